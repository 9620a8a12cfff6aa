// One training rank that really trains a small live model: fp32 master weights, AdamW, gradients from a seed.
//
// Version 0 and gradients are pure functions of (tensor name, element, seed, step), so data-parallel copies and every
// layout stay bit-equal. Weights start at 2^-12 to 2^-8 (0.00024 to 0.0039), where a step of 3e-6 is between 1.6 and
// 0.2 bf16 gaps: about half of the bf16 weights change at each of the first steps. A copyable value; not thread-safe.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/digest.h"
#include "engine/node/tiny_engine.h"

namespace areal::node {

// The master weight of version 0 of a cell; a bf16 value. `key` is delta::element_key.
float initial_weight(std::uint64_t key);
// In [-1, 1): one half stays with the element, so that steps add up, and one half is noise of the step.
float gradient_of(std::uint64_t key, std::uint64_t step_key);

struct PackedStream {
  proto::TransferRank receiver = 0;
  std::vector<std::uint32_t> bits;  // In wire order; bf16 in the low half.
};

struct Packed {
  std::vector<PackedStream> streams;  // Ascending by receiver.
  std::uint64_t elements = 0;
  Digest128 digest;  // Sum over all elements sent, once for each receiver.
};

class TinyTrainer {
 public:
  // REQUIRES: train_rank < shape->world().train_world. Holds version 0.
  TinyTrainer(TinyShapePtr shape, std::uint32_t train_rank);

  // Back to version 0 with fresh optimizer state.
  void load();
  // One AdamW step. Returns digest().
  Digest128 step(std::uint64_t batch_seed);
  // Casts to the wire dtypes what the plan sends from here.
  [[nodiscard]] Packed pack() const;
  // Of all weights held, in their wire dtypes.
  [[nodiscard]] Digest128 digest() const { return held_; }
  [[nodiscard]] std::uint64_t steps() const { return powers_.steps(); }
  // How many elements the last step changed in the wire dtype.
  [[nodiscard]] std::uint64_t changed() const { return changed_; }
  [[nodiscard]] std::uint32_t transfer_rank() const { return shape_->world().train_rank(rank_); }

  // All that changes, as words; restore() refuses words of another shape and then leaves this unchanged.
  [[nodiscard]] std::vector<std::uint64_t> save() const;
  [[nodiscard]] bool restore(std::span<const std::uint64_t> words);

 private:
  // Casts the weights anew and sums them up; says how many bits changed.
  void refresh();

  TinyShapePtr shape_;
  std::uint32_t rank_ = 0;
  delta::AdamWPowers powers_;
  std::vector<float> weights_;
  std::vector<float> exp_avg_;
  std::vector<float> exp_avg_sq_;
  std::vector<std::uint32_t> wire_;  // Of each local element.
  std::uint64_t changed_ = 0;
  std::uint64_t sent_elements_ = 0;
  Digest128 held_;
  Digest128 sent_;
};

}  // namespace areal::node
