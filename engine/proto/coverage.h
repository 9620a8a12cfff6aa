// Proves that a plan writes each element of every rollout rank exactly once, with the right element, or says where not.
//
// What is proven, for every inference rank and every shard that it holds (INV-PLAN-COVER, INV-PLAN-RANGE): each
// operation stays inside what its two ranks hold; it moves elements to their own places in the whole tensor; and the
// boxes that land in the shard are disjoint and fill it. A name to which nothing is sent must be an alias whose source
// lies in the same box on the same rank, so that what is written there is written here. Of a plan for one rank alone
// the part of that rank is proven; a training rank sees only that its operations are well placed, not whether others
// fill what is left.
//
// Boxes are swept dimension by dimension: n boxes cost n log n, not n^2. Pure functions.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/model.h"
#include "engine/proto/shard_book.h"
#include "engine/proto/transfer_plan.h"

namespace areal::proto {

struct CoverageFault {
  enum class Kind : std::uint8_t {
    kHole,       // Nobody writes the range.
    kOverlap,    // Both senders write it.
    kMisplaced,  // The sender's elements belong elsewhere in the tensor.
    kOutside,    // The operation leaves what its sender or its receiver holds, or one of them holds nothing.
    kAmbiguous,  // A rank holds two shards of the tensor: operations cannot say which they mean.
    kNoSource,   // An engine's own name that is no alias of a tensor on the same rank.
  };
  Kind kind = Kind::kHole;
  std::string tensor;                  // The engine's name.
  std::uint32_t receiver = 0;          // Transfer rank.
  std::vector<std::uint32_t> senders;  // Transfer ranks: none, one, or the two that overlap.
  Offsets begin{};                     // The range in the whole tensor; of kOutside and kAmbiguous in the shard.
  Offsets end{};
  std::uint8_t rank = 0;  // Dimensions of the range.
};
constexpr std::array<std::string_view, 6> enum_names(CoverageFault::Kind /*tag*/) {
  return {"hole", "overlap", "misplaced", "outside", "ambiguous", "no_source"};
}

// "overlap: model.norm.weight[0..64] of rank 3, from ranks 9, 12".
std::string describe(const CoverageFault& fault);

// The first fault, by receiver, then tensor, then place; nothing if the plan is proven. `train` and `infer` are what
// the plan was built from, `infer` of one engine. `aliases` hold indices into the engines' names.
std::optional<CoverageFault> find_coverage_fault(const TransferPlan& plan, const ShardBook& train,
                                                 const ShardBook& infer, std::span<const config::Alias> aliases = {});

}  // namespace areal::proto
