// A rank's sequences in micro-batches, and all ranks' mini-batches in one schedule of steps.
//
// Pure functions of lengths and counts. Source: spec 2.9, 2.10.
#pragma once
#include <optional>
#include <string_view>

#include "engine/algo/packing.h"

namespace areal::algo {

enum class Packer : std::uint8_t { kFirstFit, kDifferencing };

std::optional<Packer> packer_from(std::string_view name);  // "ffd", "kk"

struct MicrobatchSpec {
  Packer packer = Packer::kFirstFit;
  std::optional<std::int64_t> max_tokens;  // Of one micro-batch.
  std::int64_t min_count = 1;
  std::int64_t divisor = 1;
};

// Indices ascend in a micro-batch, micro-batches in lexicographic order: gradients are summed in that order.
// kInvalid: no max_tokens, and what the packer refuses.
Result<Groups> microbatches(Lengths lengths, const MicrobatchSpec& spec);

// The same for all ranks with one number of micro-batches each: while they differ, the greatest number becomes the
// least one of all. kInvalid: a rank cannot make as many as another must.
Result<std::vector<Groups>> agreed_microbatches(std::span<const std::vector<std::int64_t>> lengths,
                                                MicrobatchSpec spec);

// Which of its own mini-batches a rank runs in each step; none: a dummy that weighs nothing.
struct StepSchedule {
  std::size_t steps = 0;
  std::vector<std::vector<std::optional<std::size_t>>> slots;  // For each rank, for each step.
};

// With counts c of all ranks: max(min(wanted, sum c), max c) steps; mini-batch i of rank r runs in step
// (c_0 + … + c_{r-1} + i) mod steps. So every step has a real one somewhere, and no rank has two in one step.
// kInvalid: no mini-batch at all, a negative number, a sum beyond 64 bits, fewer than one wanted.
Result<StepSchedule> step_schedule(std::span<const std::int64_t> counts, std::int64_t wanted);

// `items` with as many dummies as make a multiple of ranks * unit. kInvalid: a negative number of items; ranks or unit
// less than 1; an answer beyond 64 bits.
Result<std::int64_t> padded_count(std::int64_t items, std::int64_t ranks, std::int64_t unit);

}  // namespace areal::algo
