#include "sim/defect/delta_defects.h"

#include "sim/defect/rule_maker.h"

namespace areal::sim {
namespace {

using config::RuleAct;

}  // namespace

std::vector<config::RuleSpec> invert_with_next_lr() {
  return {rule_of("invert_with_next_lr", effect_at("trainer.*", "step_made"), RuleAct::kSet,
                  {{"rate_used", "field:rate_next"}})};
}

}  // namespace areal::sim
