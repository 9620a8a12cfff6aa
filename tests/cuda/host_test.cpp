// What of the device code is plain C++: how tensors are cut, which form a patch takes, whether the screen's limits
// hold.
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/delta/cuda/apply_rule.h"
#include "engine/delta/cuda/change_rule.h"
#include "engine/delta/cuda/chunks.h"
#include "engine/delta/cuda/tensor_scan.h"
#include "engine/delta/cuda/tile_plan.h"
#include "tests/cuda/expect.h"
#include "tests/cuda/steps.h"
#include "tests/cuda/strata.h"

namespace {

using areal::delta::ProvenStep;
using areal::tests::State;
using areal::tests::Stratum;
using namespace areal::delta::cuda;  // NOLINT(google-build-using-namespace): the subject of this file

void tiles_never_span_two_tensors() {
  const std::array<std::uint64_t, 6> sizes{0, 1, 4096, 4097, 0, 0};
  const auto plan = plan_tiles(sizes, 4096);
  AREAL_EXPECT(plan.has_value());
  AREAL_EXPECT((plan.value().first_tile == std::vector<std::uint32_t>{0, 0, 1, 2, 4, 4, 4}));
  AREAL_EXPECT(plan.value().elements == 8194);
  AREAL_EXPECT(plan.value().tensors() == 6 && plan.value().tiles() == 4);
  AREAL_EXPECT(plan_tiles({}, 4096).value().tiles() == 0);
}

void more_tiles_than_numbers_are_refused() {
  const std::array<std::uint64_t, 2> half{1ULL << 42, (1ULL << 42) - 4096};
  AREAL_EXPECT(plan_tiles(half, 4096).has_value());
  const std::array<std::uint64_t, 2> full{1ULL << 42, 1ULL << 42};
  AREAL_EXPECT(!plan_tiles(full, 4096).has_value());
  const std::array<std::uint64_t, 1> huge{~0ULL};
  AREAL_EXPECT(!plan_tiles(huge, 4096).has_value());
}

void chunks_are_numbered() {
  std::vector<TensorPiece> pieces(4);
  pieces[1].elements = 1;
  pieces[2].elements = kChunkElements + 1;
  pieces[3].elements = kChunkElements;
  AREAL_EXPECT(number_chunks(std::span(pieces)) == 4);
  AREAL_EXPECT(pieces[0].first_chunk == 0 && pieces[1].first_chunk == 0);
  AREAL_EXPECT(pieces[2].first_chunk == 1 && pieces[3].first_chunk == 3);
}

void form_follows_the_bytes() {
  constexpr std::uint64_t kElements = 1ULL << 30;
  AREAL_EXPECT(apply_form(kElements, kElements / 100, 4) == ApplyForm::kSparse);
  AREAL_EXPECT(apply_form(kElements, kElements / 2, 4) == ApplyForm::kDense);
  AREAL_EXPECT(apply_form(kElements, kElements, 4) == ApplyForm::kDense);
  AREAL_EXPECT(apply_form(0, 0, 4) == ApplyForm::kSparse);
  AREAL_EXPECT(apply_form(1, 0, 4) == ApplyForm::kSparse);
  AREAL_EXPECT(apply_form(1, 1, 4) == ApplyForm::kDense);
  // Wider indices make it dense earlier, and more changes never make it sparse again.
  bool was_dense = false;
  for (std::uint64_t k = 0; k <= 1000; ++k) {
    const bool is_dense = apply_form(1000, k, 4) == ApplyForm::kDense;
    AREAL_EXPECT(is_dense || !was_dense);
    AREAL_EXPECT(!is_dense || apply_form(1000, k, 8) == ApplyForm::kDense);
    was_dense = is_dense;
  }
  AREAL_EXPECT(touched_pieces(1600, 1600) == 50.0);
  AREAL_EXPECT(touched_pieces(1600, 1600, 16) == 100.0);
  AREAL_EXPECT(touched_pieces(1600, 1) <= 1.0);
  const double half = touched_pieces(1 << 20, 1 << 19, 2) / (1 << 19);  // A pair is touched unless both are left alone.
  AREAL_EXPECT(half == 0.75);
}

// As wrong as FastApproximate may be, in every direction.
struct RoughApproximate {
  float root_error = 0;
  float reciprocal_error = 0;
  [[nodiscard]] float root(float x) const {
    if (std::fabs(x) < 0x1p-126F) return 0.0F;  // Of either sign: -1e-40 has a root here, and none by the rule.
    return std::sqrt(x) * (1.0F + root_error);
  }
  [[nodiscard]] float reciprocal(float x) const { return 1.0F / x * (1.0F + reciprocal_error); }
  [[nodiscard]] static float fused(float a, float b, float c) { return std::fma(a, b, c); }
};

struct Screening {
  std::uint64_t elements = 0;
  std::uint64_t unsure = 0;
  std::uint64_t wrong = 0;
};

void screen_one(const ChangeRule& rule, const State& state, const RoughApproximate& rough, Screening& sum) {
  const std::uint16_t current = areal::delta::to_bf16(state.weight);
  const Screened found =
      screen(rule, state.weight, state.exp_avg, state.exp_avg_sq, std::uint32_t{current} << 16, rough);
  ++sum.elements;
  sum.unsure += found == Screened::kUnsure ? 1 : 0;
  if (found == Screened::kUnsure) return;
  const bool marks = rule_marks(rule, state.weight, state.exp_avg, state.exp_avg_sq, current);
  if (marks != (found == Screened::kChanged)) ++sum.wrong;
}

Screening screen_stratum(const ChangeRule& rule, const ProvenStep& step, Stratum stratum) {
  Screening sum;
  constexpr float kError = 0x1p-22F;
  for (std::uint64_t i = 0; i < 40000; ++i) {
    const State state = areal::tests::state_of(stratum, 7, i, proven_scalars(step));
    screen_one(rule, state, {i % 2 == 0 ? kError : -kError, i % 4 < 2 ? kError : -kError}, sum);
  }
  return sum;
}

void screen_never_contradicts_the_rule() {
  for (const ProvenStep& step : areal::tests::steps_to_test()) {
    for (std::uint32_t stratum = 0; stratum < static_cast<std::uint32_t>(Stratum::kCount); ++stratum) {
      for (const ChangeRule& rule : {proven_rule(step), reference_rule(step), reference_rule(step, 0.0F)}) {
        const Screening sum = screen_stratum(rule, step, static_cast<Stratum>(stratum));
        AREAL_EXPECT(sum.wrong == 0);
        if (rule.equal_within == 0) AREAL_EXPECT(sum.unsure == sum.elements);
      }
    }
  }
}

// The strata are fine enough to tell: a screen that believes itself a few steps too far is caught.
void bolder_screen_is_caught() {
  const ProvenStep step = areal::tests::step_of(1e-6, 0.01, 0.95, 100);
  ChangeRule bold = proven_rule(step);
  bold.equal_within = 0x8000;
  AREAL_EXPECT(screen_stratum(bold, step, Stratum::kBeside).wrong > 0);
  bold = proven_rule(step);
  bold.changed_beyond = 0x8000 - 8;
  AREAL_EXPECT(screen_stratum(bold, step, Stratum::kBeside).wrong > 0);
}

// In float64, from the formula: an element whose weight before rounds to other bits is marked.
void float64_finds_no_more() {
  std::uint64_t changed = 0;
  std::uint64_t missed = 0;
  for (const ProvenStep& step : areal::tests::steps_to_test()) {
    const ChangeRule rule = proven_rule(step);
    for (std::uint64_t i = 0; i < 200000; ++i) {
      const auto stratum = static_cast<Stratum>(i % static_cast<std::uint64_t>(Stratum::kCount));
      const State state = areal::tests::state_of(stratum, 21, i, rule.proven);
      const std::uint16_t current = areal::delta::to_bf16(state.weight);
      const double update =
          step.learning_rate / step.bc1 * state.exp_avg / (std::sqrt(state.exp_avg_sq / step.bc2) + step.epsilon);
      const double before = (state.weight + update) / (1.0 - step.learning_rate * step.weight_decay);
      if (!std::isfinite(before) || std::fabs(before) > 1e30) continue;
      if (areal::delta::to_bf16(static_cast<float>(before)) == current) continue;
      ++changed;
      if (!rule_marks(rule, state.weight, state.exp_avg, state.exp_avg_sq, current)) ++missed;
    }
  }
  AREAL_EXPECT(changed > 100000);
  AREAL_EXPECT(missed == 0);
}

void screen_decides_nearly_all() {
  const ProvenStep step = areal::tests::step_of(1e-6, 0.01, 0.95, 100);
  const Screening sum = screen_stratum(proven_rule(step), step, Stratum::kRealistic);
  AREAL_EXPECT(sum.unsure * 500 < sum.elements);
  AREAL_EXPECT(proven_rule(areal::tests::step_of(1e-5, 0.0, 0.95, 100, 0.0)).equal_within == 0);
  AREAL_EXPECT(proven_rule(areal::tests::step_of(0.5, 0.25, 0.95, 100)).equal_within == 0);
}

}  // namespace

int main() {
  tiles_never_span_two_tensors();
  more_tiles_than_numbers_are_refused();
  chunks_are_numbered();
  form_follows_the_bytes();
  screen_never_contradicts_the_rule();
  bolder_screen_is_caught();
  float64_finds_no_more();
  screen_decides_nearly_all();
  return areal::tests::finish();
}
