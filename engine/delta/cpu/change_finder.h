// Finds which bf16 weights an AdamW step changed, in one pass over what the optimizer holds.
//
// Reads 12 bytes a weight (p, m and v after the step) and gives the indices and published bits of the weights that must
// be sent, in order. Two rules: the proven interval (proven_bound.h), which misses nothing inside docs/delta.md's
// preconditions, and the reference's margin (change_mask.h), equal to it bit for bit. All instruction sets and any
// number of threads give equal results.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/delta/change_mask.h"
#include "engine/delta/inversion.h"

namespace areal::delta {

enum class InstructionSet : std::uint8_t { kScalar, kAvx2, kAvx512 };

std::string_view name_of(InstructionSet set);
// Whether this machine has them and this build contains them.
bool has_instructions(InstructionSet set);
// The widest that this machine has.
InstructionSet best_instructions();

// One of the two rules, with the scalars of the step.
class ChangeRule {
 public:
  static ChangeRule proven(const ProvenStep& step);
  static ChangeRule proven(const ProvenScalars& scalars);
  static ChangeRule margin(const InversionScalars& scalars, float margin_rel = kReferenceMargin);

  [[nodiscard]] bool is_proven() const { return is_proven_; }
  [[nodiscard]] const ProvenScalars& proven_scalars() const { return proven_; }
  [[nodiscard]] const InversionScalars& inversion() const { return inversion_; }
  [[nodiscard]] float margin_rel() const { return margin_rel_; }

 private:
  bool is_proven_ = true;
  ProvenScalars proven_{};
  InversionScalars inversion_{};
  float margin_rel_ = 0;
};

// A parameter or a part of one, after the step. No alignment is needed.
struct OptimizerSpans {
  std::span<const float> weights;
  std::span<const float> exp_avg;
  std::span<const float> exp_avg_sq;
  std::uint64_t first_index = 0;  // Of the first weight, in the whole parameter.
};

// Ascending indices, and what stands there now. `Index` is int32 or int64; index_dtype() says which fits.
template <class Index>
struct FoundChanges {
  std::vector<Index> indices;
  std::vector<std::uint16_t> values;
};

struct FinderOptions {
  std::uint32_t threads = 1;  // Also the caller's. Small inputs take fewer.
  InstructionSet instructions = best_instructions();
};

// Keeps the memory of its threads between calls. One caller at a time.
class ChangeFinder {
 public:
  explicit ChangeFinder(const FinderOptions& options = {});
  ~ChangeFinder();
  ChangeFinder(const ChangeFinder&) = delete;
  ChangeFinder& operator=(const ChangeFinder&) = delete;

  // Replaces `found`; its capacity is kept. REQUIRES: spans are equally long; with int32, all indices fit.
  void find(const ChangeRule& rule, const OptimizerSpans& spans, FoundChanges<std::int32_t>& found);
  void find(const ChangeRule& rule, const OptimizerSpans& spans, FoundChanges<std::int64_t>& found);

 private:
  struct Parts;
  FinderOptions options_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace areal::delta
