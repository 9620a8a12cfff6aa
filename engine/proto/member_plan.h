// What one transfer rank needs to know of the plan: its passes by wire dtype, its peers, and what is covered.
//
// Computed once from the shared plan, so that a protocol holds totals and not operations. Immutable.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/dtype.h"
#include "engine/proto/transfer_plan.h"

namespace areal::proto {

// All operations of one wire dtype; every rank makes every pass, with nothing to move if need be.
struct MemberPass {
  DType wire = DType::kBf16;
  DType storage = DType::kBf16;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
};

struct MemberPeer {
  std::uint32_t sender = 0;
  std::uint32_t receiver = 0;
  std::uint64_t operations = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  Digest128 sequence{};
};

struct MemberPlan {
  std::uint32_t rank = 0;  // Transfer rank.
  bool sends = false;
  std::vector<MemberPass> passes{};
  std::vector<MemberPeer> peers{};
  std::uint64_t tensors = 0;  // With an operation of this rank.
  std::uint64_t operations = 0;
  std::uint64_t expected = 0;    // Elements of the rank's shards (receivers), or that it sends.
  std::uint64_t covered = 0;     // Written at least once.
  std::uint64_t duplicates = 0;  // Written more than once.
  Digest128 digest{};

  [[nodiscard]] std::uint64_t elements() const;
  [[nodiscard]] std::uint64_t bytes() const;
};

// One MemberPlan for each transfer rank. `infer` are the metas of one engine that the plan was built from; `aliases`
// are names (indices) that share another tensor's storage and are written with it.
std::vector<MemberPlan> member_plans(const TransferPlan& plan, const MetaSet& infer,
                                     std::span<const std::uint32_t> aliases);

}  // namespace areal::proto
