#include "engine/node/tiny_delta.h"

#include <algorithm>
#include <bit>

#include "engine/base/check.h"
#include "engine/delta/change_mask.h"
#include "engine/delta/sparse_payload.h"

namespace areal::node {
namespace {

void append_bytes(std::vector<std::uint8_t>& bytes, std::uint32_t bits, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
}

float visible_weight(float weight, DType storage) {
  return storage == DType::kBf16 ? delta::from_bf16(static_cast<std::uint16_t>(stored_bits(weight, storage))) : weight;
}

}  // namespace

std::uint32_t stored_bits(float weight, DType storage) {
  const auto bits = std::bit_cast<std::uint32_t>(weight);
  return storage == DType::kBf16 ? delta::bf16_from_bits(bits) : bits;
}

std::uint32_t wire_bits(float weight, DType storage, DType wire) {
  const auto bits = std::bit_cast<std::uint32_t>(weight);
  if (wire == DType::kBf16) return delta::bf16_from_bits(bits);
  return storage == DType::kBf16 ? delta::bits_from_bf16(delta::bf16_from_bits(bits)) : bits;
}

std::span<const std::uint32_t> TinyDelta::parts_of(std::uint32_t window) const {
  const auto& windows = shape_->windows[rank_];
  if (window >= windows.size()) return {};
  return windows[window];
}

std::uint64_t TinyDelta::capture(const TinyState& state) {
  const std::vector<TinyPart>& parts = holding().parts;
  states_.assign(parts.size(), {});
  captured_.clear();
  corrections_.assign(state.weights.size(), 0);
  sums_.assign(parts.size(), {});
  locals_.assign(parts.size(), {});
  mask_.assign(state.weights.size(), 0);
  std::uint64_t known = 0;
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const TinyPart& part = parts[i];
    delta::ParameterState& now = states_[i];
    now.has_entry = part.owned_count > 0;
    if (now.has_entry) now.step = state.steps;
    now.has_moments = now.has_entry;
    now.owned = part.owned_count;
    bytes.clear();
    for (const float weight : state.weights.subspan(part.first + part.owned_first, part.owned_count)) {
      append_bytes(bytes, std::bit_cast<std::uint32_t>(weight), 4);
    }
    now.shard = delta::fingerprint_of(bytes, DType::kF32);
    bytes.clear();
    for (const float weight : state.weights.subspan(part.first, part.count)) {
      append_bytes(bytes, stored_bits(weight, part.storage), size_of(part.storage));
    }
    now.model = delta::fingerprint_of(bytes, part.storage);
    captured_.push_back(delta::watermark_of(now, now.model));  // A shard is converted to itself.
    known += detector_.watermark(i).known ? 1 : 0;
  }
  return known;
}

TinyDelta::Inverted TinyDelta::invert(std::uint32_t window, const TinyState& state,
                                      const std::optional<delta::InversionScalars>& scalars, bool forced) {
  Inverted result{0, forced};
  for (const std::uint32_t index : parts_of(window)) {
    const TinyPart& part = holding().parts[index];
    delta::ParameterState& now = states_[index];
    now.has_recorded_lr = scalars.has_value();
    const delta::Classified local = delta::classify(detector_.watermark(index), now);
    locals_[index] = {static_cast<std::uint8_t>(local.contribution), local.expected_one_step};
    result.force = result.force || local.contribution == delta::Contribution::kForce;
    sums_[index] = delta::status_of(local, now, result.force);
    if (local.contribution != delta::Contribution::kContributes) continue;
    ++result.contributed;
    const std::uint32_t first = part.first + part.owned_first;
    for (std::uint32_t i = first; i < first + part.owned_count; ++i) {
      const float previous = delta::invert_adamw(*scalars, state.weights[i], state.exp_avg[i], state.exp_avg_sq[i]);
      corrections_[i] = std::bit_cast<std::uint32_t>(previous - visible_weight(state.weights[i], part.storage));
    }
  }
  return result;
}

void TinyDelta::give_up(std::uint32_t window) {
  for (const std::uint32_t index : parts_of(window)) {
    locals_[index] = {};
    sums_[index] = {0, 1, 0};
  }
}

void TinyDelta::reduce(std::span<TinyDelta* const> members, std::uint32_t window, std::uint8_t replica_kind) {
  TinyDelta& first = *members.front();
  for (const std::uint32_t index : first.parts_of(window)) {
    const TinyPart& part = first.holding().parts[index];
    if (part.replica_kind != replica_kind) continue;
    delta::ReducedStatus sum;
    for (TinyDelta* member : members) {
      const TinyPart& same = member->holding().parts[index];
      AREAL_CHECK(same.tensor == part.tensor && same.count == part.count && same.first == part.first);
      sum.contributed += member->sums_[index].contributed;
      sum.force += member->sums_[index].force;
      sum.owned += member->sums_[index].owned;
    }
    for (std::uint32_t i = part.first; i < part.first + part.count; ++i) {
      float total = 0.0F;
      for (TinyDelta* member : members) {
        // det-ok: float-sum: at most one member owns the element, all others add 0.
        total += std::bit_cast<float>(member->corrections_[i]);
      }
      for (TinyDelta* member : members) member->corrections_[i] = std::bit_cast<std::uint32_t>(total);
    }
    for (TinyDelta* member : members) member->sums_[index] = sum;
  }
}

TinyDelta::WindowSums TinyDelta::window_sums(std::uint32_t window, std::uint8_t replica_kind) const {
  WindowSums sums;
  for (const std::uint32_t index : parts_of(window)) {
    const TinyPart& part = holding().parts[index];
    if (part.replica_kind != replica_kind) continue;
    for (std::uint32_t i = part.first; i < part.first + part.count; ++i) {
      sums.corrections.push_back(std::bit_cast<float>(corrections_[i]));
    }
    for (const std::uint64_t word : {sums_[index].contributed, sums_[index].force, sums_[index].owned}) {
      sums.statuses.push_back(static_cast<std::int64_t>(word));
    }
  }
  return sums;
}

bool TinyDelta::take_sums(std::uint32_t window, std::uint8_t replica_kind, const WindowSums& sums) {
  const WindowSums own = window_sums(window, replica_kind);
  if (sums.corrections.size() != own.corrections.size() || sums.statuses.size() != own.statuses.size()) return false;
  std::size_t element = 0;
  std::size_t word = 0;
  for (const std::uint32_t index : parts_of(window)) {
    const TinyPart& part = holding().parts[index];
    if (part.replica_kind != replica_kind) continue;
    for (std::uint32_t i = part.first; i < part.first + part.count; ++i) {
      corrections_[i] = std::bit_cast<std::uint32_t>(sums.corrections[element++]);
    }
    sums_[index].contributed = static_cast<std::uint64_t>(sums.statuses[word++]);
    sums_[index].force = static_cast<std::uint64_t>(sums.statuses[word++]);
    sums_[index].owned = static_cast<std::uint64_t>(sums.statuses[word++]);
  }
  return true;
}

bool TinyDelta::is_dense_name(const TinyPart& part) const {
  return delta::is_forced_dense(shape_->model.name_of(shape_->model.parameters[part.tensor]));
}

// Returns how many elements of the part changed.
std::uint64_t TinyDelta::mask_part(const TinyPart& part, const TinyState& state, bool has_old) {
  const bool dense = is_dense_name(part);
  std::uint64_t changed = 0;
  for (std::uint32_t i = part.first; i < part.first + part.count; ++i) {
    bool differs = dense;
    if (!dense && has_old) {
      const float old = visible_weight(state.weights[i], part.storage) + std::bit_cast<float>(corrections_[i]);
      const std::uint32_t bits = stored_bits(state.weights[i], part.storage);
      differs = part.storage == DType::kBf16
                    ? delta::bf16_changed(old, static_cast<std::uint16_t>(bits), delta::kReferenceMargin)
                    : delta::f32_changed(old, bits);
    }
    mask_[i] = differs ? 1 : 0;
    changed += differs ? 1 : 0;
  }
  return changed;
}

TinyDelta::Compared TinyDelta::compare(std::uint32_t window, const TinyState& state, bool forced) {
  Compared result{0, forced};
  for (const std::uint32_t index : parts_of(window)) {
    const TinyPart& part = holding().parts[index];
    const delta::Classified local{static_cast<delta::Contribution>(locals_[index].contribution),
                                  locals_[index].expected_one_step};
    const delta::Watermark& watermark = detector_.watermark(index);
    const delta::Resolution resolution = delta::resolve(sums_[index], watermark, states_[index], local, part.count);
    if (resolution == delta::Resolution::kForce) {
      result.full = true;
      continue;
    }
    const std::uint64_t changed = mask_part(part, state, resolution == delta::Resolution::kOverride);
    if (changed == 0 && delta::judge_empty_mask(watermark, states_[index].model) == delta::PayloadVerdict::kDense) {
      result.full = true;
    }
    result.changed += changed;
  }
  return result;
}

std::vector<PackedUpdates> TinyDelta::pack(std::span<const std::uint32_t> wire) const {
  const std::vector<TinyPart>& parts = holding().parts;
  std::vector<delta::SparseSource> sources;
  sources.reserve(parts.size());
  for (const TinyPart& part : parts) {
    // Values are sent as they were cast for the wire, so both sides of a cast have the same dtype here.
    sources.push_back({true,
                       delta::change_mask(std::span(mask_).subspan(part.first, part.count)),
                       {part.wire, {}, wire.subspan(part.first, part.count)}});
  }
  std::vector<PackedUpdates> packed;
  const proto::RankPlan plan = shape_->plan->rank(shape_->world().train_rank(rank_));
  for (std::size_t i = 0; i < plan.peer_count(); ++i) {
    const TinyStream& stream = shape_->streams[static_cast<std::size_t>(&plan.list(i) - shape_->plan->lists.data())];
    std::vector<delta::SparseOp> ops;
    for (const TinyOp& op : stream.ops) ops.push_back({op.send_part, op.box, op.wire});
    auto payloads = delta::build_payloads(sources, ops, delta::IndexOrder::kAscending);
    AREAL_CHECK(payloads.has_value());
    PackedUpdates& out = packed.emplace_back();
    for (std::size_t k = 0; k < payloads->patches.size(); ++k) {
      const delta::SparsePatch& patch = payloads->patches[k];
      out.counts.push_back(static_cast<std::uint32_t>(patch.indices.size()));
      out.indices.insert(out.indices.end(), patch.indices.begin(), patch.indices.end());
      out.bits.insert(out.bits.end(), patch.values.begin(), patch.values.end());
      out.by_dtype[static_cast<std::size_t>(patch.dtype)] += patch.indices.size();
      out.weight[static_cast<std::size_t>(patch.dtype)] += patch.indices.size() * stream.ops[k].weight;
    }
  }
  return packed;
}

std::uint64_t TinyDelta::mark_synced() {
  const std::uint64_t count = captured_.size();
  detector_.mark_synced(std::move(captured_));
  captured_.clear();
  return count;
}

void TinyDelta::forget() {
  detector_.forget();
  captured_.clear();
}

}  // namespace areal::node
