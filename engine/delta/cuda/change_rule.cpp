// Works out a screen's limits from a step's scalars.
#include "engine/delta/cuda/change_rule.h"

namespace areal::delta::cuda {
namespace {

constexpr double kUnit = 0x1p-24;
constexpr double kHalf = 0x8000;  // Steps to the rounding boundary.
constexpr double kSteps = 1.02;   // Of one e |p|, at most.

// What `screen` needs so that its error bound holds; other settings go to the rule, element by element.
bool can_screen(const ProvenStep& step, double growth) {
  const double step_size = step.learning_rate / step.bc1;
  return step.bc2 >= 0x1p-24 && step.bc2 <= 1.0 && step.epsilon >= 0x1p-28 && step.epsilon <= 0x1p+10 &&
         step_size >= 0x1p-40 && step_size <= 0x1p+10 && growth >= 0.0 && growth <= 0x1p-5;
}

// `reach` is how far from its own w the rule still marks, in steps.
void set_screen(ChangeRule& rule, const ProvenStep& step, double reach_of_weight, double reach_of_update,
                double reach_in_steps) {
  const double growth = 1.0 / (1.0 - step.learning_rate * step.weight_decay) - 1.0;
  if (!can_screen(step, growth)) return;
  const double most_update = 0x1p-6 * 0.54 + growth;
  const double differ = 5.0 + 48.0 * most_update;
  const double inside = kSteps * (differ + reach_of_weight / kUnit + reach_of_update / kUnit * most_update + 0.0625);
  const double within = kHalf - std::ceil(inside + reach_in_steps) - 1.0;
  if (!(within > 0.0)) return;
  rule.equal_within = static_cast<std::uint32_t>(within);
  rule.changed_beyond = static_cast<std::uint32_t>(kHalf + std::ceil(kSteps * differ) + 1.0);
  rule.root_scale = static_cast<float>(std::sqrt(1.0 / step.bc2));
  rule.epsilon = static_cast<float>(step.epsilon);
  rule.step_size = static_cast<float>(step.learning_rate / step.bc1 * (1.0 + growth));
  rule.scale = static_cast<float>(1.0 + growth);
}

}  // namespace

ChangeRule proven_rule(const ProvenStep& step) {
  ChangeRule rule;
  rule.margin = Margin::kProven;
  rule.proven = proven_scalars(step);
  const double of_weight = std::fmax(static_cast<double>(rule.proven.moved_error), rule.proven.still_error);
  // NaNs, where nothing is covered, leave the screen off.
  set_screen(rule, step, of_weight, rule.proven.update_error, 0.0);
  if (!(rule.proven.update_error >= 0.0F)) rule.equal_within = 0, rule.changed_beyond = 0xFFFFFFFF;
  return rule;
}

ChangeRule reference_rule(const ProvenStep& step, float margin_rel) {
  ChangeRule rule;
  rule.margin = Margin::kReference;
  rule.margin_rel = margin_rel;
  rule.reference_step_size = static_cast<float>(step.learning_rate / step.bc1);
  rule.reference_bc2 = static_cast<float>(step.bc2);
  rule.reference_epsilon = static_cast<float>(step.epsilon);
  rule.reference_decay = static_cast<float>(1.0 - step.learning_rate * step.weight_decay);
  // Two more roundings than the proven w: of 1 - lr wd and of the quotient by it; each of 1 - margin and of the
  // product with the gap moves the margin by less than a step.
  set_screen(rule, step, 3.0 * kUnit, 0.0, kHalf * margin_rel + 2.0);
  return rule;
}

}  // namespace areal::delta::cuda
