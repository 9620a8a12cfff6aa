// What a sender knows of the weights that receivers last acknowledged, and whether one optimizer step explains what
// happened to them since.
//
// One pass over the parameters in model order, the same on all ranks: classify() from what this rank has, then the
// ranks of the parameter's group sum a correction and a status, then resolve() from the sums (spec/transfer.md 1.6).
// kForce of any parameter makes the whole step full, but the pass goes on to its end, so that every rank posts the same
// reductions. Converted parameters whose mask came out empty go to judge_empty_mask() (1.7 step 5).
//
// A parameter that has an entry but no step or no moments, or whose counter did not move, forces nothing by itself. If
// it changed, the step is full all the same: resolve() compares its fingerprints, and judge_empty_mask() those of what
// it is converted to. The second alone would not do: other ranks' parts of the same converted tensor can have stepped,
// and then its mask is not empty.
//
// classify(), resolve() and judge_empty_mask() are pure. Detector is a value; one loop owns it.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/fields.h"
#include "engine/delta/fingerprint.h"

namespace areal::delta {

// One parameter as it was synced last. Indexed by the parameter's place in model order, never by address.
struct Watermark {
  bool known = false;                  // Was captured, with or without an optimizer entry.
  std::optional<std::uint64_t> step;   // The optimizer's counter, if there was one.
  std::optional<Fingerprint> shard;    // The fp32 main shard that this rank owns.
  std::optional<Fingerprint> model;    // The model's own tensor.
  std::optional<Fingerprint> payload;  // What it is converted to for the wire.
  AREAL_FIELDS(known, step, shard, model, payload)
};

// The same parameter now.
struct ParameterState {
  bool has_entry = false;             // This rank's optimizer owns a part of it.
  std::optional<std::uint64_t> step;  // Steps done, counted from 1; nothing or 0 before the first.
  Fingerprint shard{};                // Only looked at with an entry.
  Fingerprint model{};
  bool has_moments = false;      // Both, of the shard's size.
  bool has_recorded_lr = false;  // The rate that the last step consumed.
  std::uint64_t owned = 0;       // Elements.
  AREAL_FIELDS(has_entry, step, shard, model, has_moments, has_recorded_lr, owned)
};

// What to record of a parameter that was synced in `state`.
Watermark watermark_of(const ParameterState& state, const std::optional<Fingerprint>& payload);

enum class Contribution : std::uint8_t { kNothing, kBadState, kForce, kUnchanged, kContributes };
constexpr std::array<std::string_view, 5> enum_names(Contribution /*tag*/) {
  return {"nothing", "bad_state", "force", "unchanged", "contributes"};
}

struct Classified {
  Contribution contribution = Contribution::kNothing;
  bool expected_one_step = false;  // Its counter says that it stepped once.
};

// The first table of 1.6, first match. A watermark without a step counts as step 0, one without a shard fingerprint has
// a different one.
Classified classify(const Watermark& watermark, const ParameterState& state);

// The sums over the members of a parameter's group.
struct ReducedStatus {
  std::uint64_t contributed = 0;
  std::uint64_t force = 0;
  std::uint64_t owned = 0;  // Elements of those who contributed.
  AREAL_FIELDS(contributed, force, owned)
};

// What this rank adds to the sums. `forced`: whether this rank's pass was forced before, or is by this parameter.
ReducedStatus status_of(const Classified& local, const ParameterState& state, bool forced);

enum class Resolution : std::uint8_t { kForce, kNoOverride, kOverride };
constexpr std::array<std::string_view, 3> enum_names(Resolution /*tag*/) {
  return {"force", "no_override", "override"};
}

// The second table of 1.6. kNoOverride: the live values are also the old ones. kOverride: live value + correction are.
// `numel` counts the elements of the whole parameter.
Resolution resolve(const ReducedStatus& sums, const Watermark& watermark, const ParameterState& state,
                   const Classified& local, std::uint64_t numel);

enum class PayloadVerdict : std::uint8_t { kKeep, kDense };
constexpr std::array<std::string_view, 2> enum_names(PayloadVerdict /*tag*/) { return {"keep", "dense"}; }

// For a converted parameter of which no element seems to have changed: kDense, for the whole step, if its payload was
// never recorded or is not the recorded one.
PayloadVerdict judge_empty_mask(const Watermark& watermark, const Fingerprint& payload);

// The watermarks of one rank. They describe what receivers acknowledged: captured before a transfer, put here after it.
class Detector {
 public:
  // A parameter that was never recorded has an empty watermark.
  [[nodiscard]] const Watermark& watermark(std::size_t index) const;
  // Whether anything was synced yet; if not, the first update is full (spec/transfer.md 1.8).
  [[nodiscard]] bool has_watermark() const;

  // `captured` was taken before the transfer that receivers have now acknowledged; one entry a parameter.
  void mark_synced(std::vector<Watermark> captured) { watermarks_ = std::move(captured); }
  // Nothing is known of what receivers hold.
  void forget() { watermarks_.clear(); }

  AREAL_FIELDS(watermarks_)

 private:
  std::vector<Watermark> watermarks_;
};

}  // namespace areal::delta
