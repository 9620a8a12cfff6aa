#include "sim/defect/batch_defects.h"

namespace areal::sim {
namespace {

// Sets one field of every posted batch of a kind.
config::RuleSpec set_on_batches(const char* id, const char* batch_kind, config::FieldValue value) {
  config::RuleSpec rule;
  rule.id = id;
  rule.act = config::RuleAct::kSet;
  rule.match.kind = "post_batch";
  rule.match.fields = {{"kind", batch_kind, 0}};
  rule.set = {std::move(value)};
  return rule;
}

}  // namespace

std::vector<config::RuleSpec> constant_barrier_key() {
  return {set_on_batches("constant_barrier_key", "barrier", {"tag", "1", 0})};
}

std::vector<config::RuleSpec> plan_from_storage_dtype() {
  return {set_on_batches("plan_from_storage_dtype", "send", {"dtype", "field:storage_dtype", 0})};
}

}  // namespace areal::sim
