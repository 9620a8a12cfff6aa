// How a rank of the tiny engine finds out what its last step changed: from its optimizer's moments, without a copy of
// the weights before.
//
// One pass: capture() what is held now; then window by window invert() into corrections, reduce them over the copies of
// each part, and compare() into a mask; pack() takes the masked elements. mark_synced() when receivers acknowledged
// them. Source: spec/transfer.md 1.3 to 1.9. A copyable value; not thread-safe.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/fields.h"
#include "engine/delta/detector.h"
#include "engine/delta/inversion.h"
#include "engine/node/tiny_engine.h"

namespace areal::node {

// A rank's optimizer and what it would send, as of now. Views into the trainer.
struct TinyState {
  std::span<const float> weights;  // fp32 main weights.
  std::span<const float> exp_avg;
  std::span<const float> exp_avg_sq;
  std::uint64_t steps = 0;  // Done; that of every parameter.
};

// The weight as the training side's model holds it: bits in the storage dtype, 16-bit dtypes in the low half.
std::uint32_t stored_bits(float weight, DType storage);
// The same as the receiver wants it.
std::uint32_t wire_bits(float weight, DType storage, DType wire);

// Updates of one pair: for the i-th operation of its stream, counts[i] updates.
struct PackedUpdates {
  std::vector<std::uint32_t> counts;
  std::vector<std::int32_t> indices;  // In the receiver's part.
  std::vector<std::uint32_t> bits;
  std::array<std::uint64_t, kDTypeCount> by_dtype{};
  std::array<std::uint64_t, kDTypeCount> weight{};  // As TinyStream counts it.
  AREAL_FIELDS(counts, indices, bits, by_dtype, weight)
};

class TinyDelta {
 public:
  struct Inverted {
    std::uint64_t contributed = 0;  // Parameters.
    bool force = false;
  };
  struct Compared {
    std::uint64_t changed = 0;  // Elements.
    bool full = false;
  };

  TinyDelta(TinyShapePtr shape, std::uint32_t train_rank) : shape_(std::move(shape)), rank_(train_rank) {}

  // Returns how many parameters have a watermark of an earlier sync. Clears the mask.
  std::uint64_t capture(const TinyState& state);
  // `scalars` are those of the last step, nothing if its learning rate was not recorded. REQUIRES: capture().
  Inverted invert(std::uint32_t window, const TinyState& state, const std::optional<delta::InversionScalars>& scalars,
                  bool forced);
  // The inversion of a window failed here: this rank adds nothing and forces a full update.
  void give_up(std::uint32_t window);
  // Sums up the corrections and statuses of one kind of part over the members of a replica group.
  // REQUIRES: all hold the same parts in this window, and have inverted it.
  static void reduce(std::span<TinyDelta* const> members, std::uint32_t window, std::uint8_t replica_kind);
  // What this rank adds to the sums of one window and kind, and the sums it reads back, in the same order: corrections
  // of all its elements, and three words of status a parameter. take_sums() refuses other lengths.
  struct WindowSums {
    std::vector<float> corrections;
    std::vector<std::int64_t> statuses;
  };
  [[nodiscard]] WindowSums window_sums(std::uint32_t window, std::uint8_t replica_kind) const;
  [[nodiscard]] bool take_sums(std::uint32_t window, std::uint8_t replica_kind, const WindowSums& sums);
  Compared compare(std::uint32_t window, const TinyState& state, bool forced);
  // One for each stream of this rank, in the order of its plan.
  [[nodiscard]] std::vector<PackedUpdates> pack(std::span<const std::uint32_t> wire) const;

  // What was captured is what the receivers hold. Returns how many parameters that are.
  std::uint64_t mark_synced();
  // Nothing is known of what receivers hold.
  void forget();

  [[nodiscard]] std::span<const std::uint8_t> mask() const { return mask_; }

  AREAL_FIELDS(detector_, captured_, states_, corrections_, sums_, locals_, mask_)

 private:
  struct Local {
    std::uint8_t contribution = 0;
    bool expected_one_step = false;
    AREAL_FIELDS(contribution, expected_one_step)
  };

  [[nodiscard]] const TinyHolding& holding() const { return shape_->trainers[rank_]; }
  [[nodiscard]] std::span<const std::uint32_t> parts_of(std::uint32_t window) const;
  [[nodiscard]] bool is_dense_name(const TinyPart& part) const;
  std::uint64_t mask_part(const TinyPart& part, const TinyState& state, bool has_old);

  TinyShapePtr shape_;
  std::uint32_t rank_ = 0;
  delta::Detector detector_;
  std::vector<delta::Watermark> captured_;     // By part.
  std::vector<delta::ParameterState> states_;  // By part, as captured.
  std::vector<std::uint32_t> corrections_;     // Bits of fp32, by local element.
  std::vector<delta::ReducedStatus> sums_;     // By part; of this rank alone until reduced.
  std::vector<Local> locals_;                  // By part.
  std::vector<std::uint8_t> mask_;             // By local element.
};

}  // namespace areal::node
