// One training rank that really trains a small live model: fp32 master weights, AdamW, gradients from a seed.
//
// Version 0 and gradients are pure functions of (tensor name, element, seed, step), so data-parallel copies and every
// layout stay bit-equal. Weights start at 2^-8 to 2^-4 (0.0039 to 0.0625), where a step of 3e-6 is between a tenth and
// a hundredth of a bf16 gap: about one bf16 weight in twenty changes at a step. A copyable value; not thread-safe.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/digest.h"
#include "engine/node/tiny_delta.h"
#include "engine/node/tiny_engine.h"

namespace areal::node {

// The master weight of version 0 of a cell, in fp32. `key` is delta::element_key.
float initial_weight(std::uint64_t key);
// In [-1, 1): one half stays with the element, so that steps add up, and one half is noise of the step.
float gradient_of(std::uint64_t key, std::uint64_t step_key);

struct PackedStream {
  proto::TransferRank receiver = 0;
  std::vector<std::uint32_t> bits;  // In wire order; bf16 in the low half. Empty in a delta.
  PackedUpdates updates;            // Of a delta.
  AREAL_FIELDS(receiver, bits, updates)
};

struct Packed {
  std::vector<PackedStream> streams;  // Ascending by receiver.
  bool is_delta = false;
  std::uint64_t elements = 0;  // Sent, once for each receiver.
  std::uint64_t sent = 0;      // Low word of the sum over them.
  Digest128 digest;            // Sum over all that the receivers should hold from here then, under every name.
  AREAL_FIELDS(streams, is_delta, elements, sent, digest)
};

class TinyTrainer {
 public:
  // REQUIRES: train_rank < shape->world().train_world. Holds version 0.
  TinyTrainer(TinyShapePtr shape, std::uint32_t train_rank);

  // Back to version 0 with fresh optimizer state; nothing is known of what receivers hold.
  void load();
  // One AdamW step at the configured learning rate, which makes the next version. Returns digest().
  Digest128 step(std::uint64_t batch_seed) {
    return advance(version_ + 1, batch_seed, 1, shape_->optimizer.learning_rate);
  }
  // `steps` AdamW steps, which make `version`; none leaves everything as it is but the version. Returns digest().
  Digest128 advance(Version version, std::uint64_t batch_seed, std::uint64_t steps, double learning_rate);
  // Casts to the wire dtypes what the plan sends from here.
  [[nodiscard]] Packed pack() const;
  // The same of what the delta's mask holds.
  [[nodiscard]] Packed pack_delta() const;

  // One pass of finding out what the last step changed (tiny_delta.h). `learning_rate` is the one it used, if recorded.
  std::uint64_t capture() { return delta_.capture(state()); }
  TinyDelta::Inverted invert(std::uint32_t window, std::optional<double> learning_rate, bool forced);
  TinyDelta::Compared compare(std::uint32_t window, bool forced) { return delta_.compare(window, state(), forced); }
  TinyDelta& delta() { return delta_; }
  [[nodiscard]] const TinyDelta& delta() const { return delta_; }
  // Bits in the wire dtype, by local element.
  [[nodiscard]] std::span<const std::uint32_t> wire() const { return wire_; }
  // Version 0 is what was loaded; a restored one is that of the checkpoint.
  [[nodiscard]] Version version() const { return version_; }
  // Of all weights held, in their wire dtypes.
  [[nodiscard]] Digest128 digest() const { return held_; }
  [[nodiscard]] std::uint64_t steps() const { return powers_.steps(); }
  // How many elements the last step changed in the wire dtype.
  [[nodiscard]] std::uint64_t changed() const { return changed_; }
  [[nodiscard]] const TinyHolding& holding() const { return shape_->trainers[rank_]; }
  [[nodiscard]] std::uint32_t transfer_rank() const { return shape_->world().train_rank(rank_); }

  // A checkpoint: version, weights, moments and step counters, as words. Never what is known of receivers: restore()
  // forgets that. It refuses words of another shape and then leaves this unchanged.
  [[nodiscard]] std::vector<std::uint64_t> save() const;
  [[nodiscard]] bool restore(std::span<const std::uint64_t> words);

 private:
  [[nodiscard]] TinyState state() const { return {weights_, exp_avg_, exp_avg_sq_, powers_.steps()}; }
  // Casts the weights anew and sums them up; says how many bits changed.
  void refresh();

  TinyShapePtr shape_;
  std::uint32_t rank_ = 0;
  Version version_ = 0;
  delta::AdamWPowers powers_;
  std::vector<float> weights_;
  std::vector<float> exp_avg_;
  std::vector<float> exp_avg_sq_;
  std::vector<std::uint32_t> wire_;  // Of each local element.
  std::uint64_t changed_ = 0;
  std::uint64_t sent_elements_ = 0;
  Digest128 held_;
  Digest128 sent_;  // Over all that the plan sends from here, once for each receiver.
  Digest128 due_;   // The same under every name: aliases too, which are never sent.
  TinyDelta delta_;
};

}  // namespace areal::node
