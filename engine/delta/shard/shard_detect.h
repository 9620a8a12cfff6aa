// An optimizer shard finds its own changed elements, and sends them straight to where they lie in rollout shards.
//
// No parameter is reduced or gathered: whether an element changed depends on its own state alone, and its owner has
// that. With the reference's margin the decision is the reference's bit for bit, also in the rounding that its sum of
// corrections adds (spec/transfer.md 1.6 and 1.7); with the proven bound nothing that changed is left out
// (docs/delta.md). What still has to be agreed on is small: the status words of 1.6, three a parameter.
//
// Pure functions; safe on any thread.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/delta/change_mask.h"
#include "engine/delta/inversion.h"
#include "engine/delta/proven_scalars.h"
#include "engine/delta/shard/owner_plan.h"
#include "engine/delta/sparse_payload.h"

namespace areal::delta {

// What a rank owns of a core tensor's piece, after the step. Views of equal length.
struct OwnedState {
  std::span<const float> weights;
  std::span<const float> exp_avg;
  std::span<const float> exp_avg_sq;
  // What the model shows: the storage dtype's bits, bf16 in the low half. Values that are sent come from here.
  std::span<const std::uint32_t> visible;
  DType storage = DType::kBf16;
};

// Which of the two rules decides, with the scalars of the step.
struct ShardRule {
  bool is_proven = true;
  ProvenScalars proven;
  InversionScalars inversion;
  float margin_rel = kReferenceMargin;
};
inline ShardRule proven_rule(const ProvenStep& step) { return {true, proven_scalars(step), {}, 0}; }
inline ShardRule margin_rule(const InversionScalars& scalars, float margin_rel = kReferenceMargin) {
  return {false, {}, scalars, margin_rel};
}

// Ascending positions in the owned range. Storage must be bf16 or fp32; of any other all elements count as changed.
// With the proven bound an element whose visible bits are not those of its weight counts as changed.
std::vector<std::uint64_t> changed_elements(const OwnedState& state, const ShardRule& rule);
// All of them: for tensors that are always sent whole (is_forced_dense()).
std::vector<std::uint64_t> all_elements(const OwnedState& state);

// Takes what changed into the slices of one core tensor's owned range: one patch for each slice, indices ascending, in
// the rollout's shard. `changed` are ascending positions in the owned range. Refuses slices of more than one owned
// range or of none that the layout has, positions that do not ascend or are outside of what is owned, and casts other
// than between bf16 and fp32.
Result<std::vector<SparsePatch>> route_changes(const CoreLayout& layout, std::span<const OwnerSlice> slices,
                                               const OwnedState& state, std::span<const std::uint64_t> changed);

// What crosses the wire for a delta, either way. Gathers over tensor ranks, which the reference needs before it
// compares, are not counted.
struct DeltaTraffic {
  std::uint64_t updates = 0;        // Elements times receivers.
  std::uint64_t data_bytes = 0;     // Indices and values.
  std::uint64_t count_bytes = 0;    // One int32 a slice.
  std::uint64_t status_bytes = 0;   // Status words that one copy reduces: three a core tensor.
  std::uint64_t reduced_bytes = 0;  // fp32 corrections that one copy reduces; none if shards detect alone.
};
// Of patches that route_changes() made of `slices`, by all owners of one core tensor.
DeltaTraffic shard_traffic(std::span<const SparsePatch> patches);
// The reference reduces a correction for every element of a piece, whatever changed; patches come on top.
DeltaTraffic reduction_traffic(const CoreTensor& tensor, std::span<const SparsePatch> patches);

}  // namespace areal::delta
