// Cross-checks of a scenario: layouts against the model, faults and rules against the cluster, budgets, expectations.
#include "engine/config/scenario_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/base/text.h"
#include "engine/config/scenario_cluster.h"
#include "engine/config/scenario_delta.h"

namespace areal::config {
namespace {

bool is_inside(std::string_view path, std::string_view outer) {
  return path.starts_with(outer) &&
         (path.size() == outer.size() || path[outer.size()] == '.' || path[outer.size()] == '[');
}

// Lives for one check.
class Checker {
 public:
  Checker(const Scenario& scenario, const Places& places, std::vector<Problem>& problems)
      : scenario_(scenario), places_(places), problems_(problems), known_(problems.size()) {}

  void check_all() {
    check_name();
    check_layouts();
    for (Conflict& conflict : update_conflicts(scenario_, shape_)) add(conflict.path, std::move(conflict.text));
    for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
      check_trigger(scenario_.faults[i], fmt::format("scenario.faults[{}]", i));
      check_fault(scenario_.faults[i], fmt::format("scenario.faults[{}]", i));
    }
    for (std::size_t i = 0; i < scenario_.rules.size(); ++i) check_rule(i, fmt::format("scenario.rules[{}]", i));
    check_interleave();
    check_budget();
    check_expect(scenario_.expect, "scenario.expect");
    if (scenario_.expect_defect.has_value()) check_expect(*scenario_.expect_defect, "scenario.with_defect");
    check_defect();
  }

 private:
  // Whether the reader could make nothing of `path` or of something in it or around it.
  [[nodiscard]] bool is_known_bad(std::string_view path) const {
    return std::any_of(
        problems_.begin(), problems_.begin() + static_cast<std::ptrdiff_t>(known_), [path](const Problem& problem) {
          return is_inside(problem.path, path) || (!problem.path.empty() && is_inside(path, problem.path));
        });
  }
  void add(const std::string& path, std::string text) {
    if (!is_known_bad(path)) problems_.push_back({places_.line_of(path), path, std::move(text)});
  }
  void need(bool holds, const std::string& path, std::string text) {
    if (!holds) add(path, std::move(text));
  }

  void check_name();
  void check_layouts();
  void check_model(const ParallelStrategy& train, const ParallelStrategy& infer);
  [[nodiscard]] bool check_cuts(const ModelSpec& model, const ParallelStrategy& strategy, bool is_train);
  void check_memory(const ModelSpec& model);
  void check_pattern(const std::string& pattern, const std::string& path);
  void check_trigger(const FaultSpec& fault, const std::string& path);
  void check_fault(const FaultSpec& fault, const std::string& path);
  void check_rule(std::size_t index, const std::string& path);
  void check_interleave();
  void check_budget();
  void check_expect(const ExpectSettings& expect, const std::string& path);
  void check_defect();

  const Scenario& scenario_;
  const Places& places_;
  std::vector<Problem>& problems_;
  std::size_t known_;  // So many problems were found by the reader.
  std::optional<ClusterShape> shape_;
  std::vector<std::string> nodes_;  // Empty: the layouts are wrong.
};

void Checker::check_name() {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  const std::string& name = scenario_.name;
  const bool good = !name.empty() && name.front() != '.' && name.size() <= 100 &&
                    name.find_first_not_of(kAllowed) == std::string::npos;
  need(good, "scenario.name", fmt::format("'{}' cannot be part of a file name: use letters, digits, '_', '-'", name));
}

void Checker::check_layouts() {
  const Result<ParallelStrategy> train = train_strategy(scenario_.train);
  const Result<ParallelStrategy> infer = rollout_strategy(scenario_.rollout);
  if (!train) add("scenario.train.backend", train.error().detail);
  if (!infer) add("scenario.rollout.backend", infer.error().detail);
  if (!train || !infer) return;
  constexpr std::uint64_t kMaxRanks = 4096;
  shape_ = cluster_shape(*train, *infer);
  const std::uint64_t ranks = shape_->trainers + std::uint64_t{shape_->engines} * shape_->engine_world;
  if (ranks > kMaxRanks) {
    add(shape_->trainers > kMaxRanks / 2 ? "scenario.train.backend" : "scenario.rollout.backend",
        fmt::format("{} ranks of trainer and engines; at most {}", ranks, kMaxRanks));
    shape_.reset();
    return;
  }
  nodes_ = node_names(*shape_);
  if (!is_known_bad("scenario.model")) check_model(*train, *infer);
}

void Checker::check_model(const ParallelStrategy& train, const ParallelStrategy& infer) {
  const Result<ModelSpec> model = scenario_model(scenario_.model);
  if (!model) return add("scenario.model.kind", model.error().detail);
  const bool train_fits = check_cuts(*model, train, true);
  const bool infer_fits = check_cuts(*model, infer, false);
  if (!train_fits || !infer_fits) return;
  const Result<ModelSpec> live = live_model(*model, train, infer, {.all_names = scenario_.model.live_all});
  if (!live) return add("scenario.model", live.error().detail);
  need(scenario_.model.renamed <= model->parameters.size(), "scenario.model.renamed",
       fmt::format("the model has only {} tensors", model->parameters.size()));
  check_memory(*model);
}

// Every tensor must be cut into equal pieces, and ranks that share pieces must share them evenly.
bool Checker::check_cuts(const ModelSpec& model, const ParallelStrategy& strategy, bool is_train) {
  const std::string path = is_train ? "scenario.train.backend" : "scenario.rollout.backend";
  const auto refuse = [&](std::string text) {
    add(path, fmt::format("'{}' does not fit model {}: {}",
                          is_train ? scenario_.train.backend : scenario_.rollout.backend, scenario_.model.kind, text));
    return false;
  };
  if (strategy.pp > model.dims.layers) {
    return refuse(fmt::format("{} pipeline stages for {} layers", strategy.pp, model.dims.layers));
  }
  if (model.dims.experts % strategy.ep != 0) {
    return refuse(fmt::format("{} experts do not divide over {} owners", model.dims.experts, strategy.ep));
  }
  if (!is_train && strategy.tp % strategy.ep != 0) {
    return refuse(fmt::format("{} expert owners do not divide {} tensor ranks", strategy.ep, strategy.tp));
  }
  for (const Parameter& parameter : model.parameters) {
    const std::uint32_t shards =
        is_train ? training_shards(parameter, strategy) : inference_shards(parameter, strategy);
    const std::uint32_t extent = parameter.shape.extent[cut_dimension(parameter.shard)];
    if (shards > 1 && extent % shards != 0) {
      return refuse(fmt::format("{}: {} does not divide by {} shards", model.name_of(parameter), extent, shards));
    }
    if (parameter.max_shards > 0 && strategy.tp % shards != 0) {
      return refuse(fmt::format("{} tensor ranks do not share {} key-value heads evenly", strategy.tp, shards));
    }
  }
  return true;
}

void Checker::check_memory(const ModelSpec& model) {
  if (!shape_) return;
  const std::uint64_t ranks = std::uint64_t{shape_->infer.tp} * shape_->infer.pp;
  const std::uint64_t least = model.wire_bytes() / ranks;
  need(least <= scenario_.devices.memory, "scenario.devices.memory",
       fmt::format("{} is too small: each of the {} ranks of an engine holds at least {} of weights",
                   bytes_text(scenario_.devices.memory), ranks, bytes_text(least)));
}

void Checker::check_pattern(const std::string& pattern, const std::string& path) {
  if (!shape_ || nodes_.empty() || pattern.empty()) return;
  const auto fits = [&pattern](const std::string& node) { return fits_pattern(pattern, node); };
  if (std::ranges::any_of(nodes_, fits)) return;
  add(path, fmt::format("'{}' fits no node; there are trainer.0 to trainer.{}, engine.0.rank.0 to engine.{}.rank.{}, "
                        "gateway, controller, router, store, guard.0 to guard.{}",
                        pattern, shape_->trainers - 1, shape_->engines - 1, shape_->engine_world - 1, shape_->engines));
}

void Checker::check_trigger(const FaultSpec& fault, const std::string& path) {
  const int triggers =
      (fault.at.has_value() ? 1 : 0) + (fault.when.has_value() ? 1 : 0) + (fault.chance.has_value() ? 1 : 0);
  if (triggers == 0) add(path, "needs a trigger: one of at, when, chance");
  if (triggers > 1) add(path, "has more than one trigger; only one of at, when, chance");
  if (fault.when.has_value()) check_pattern(fault.when->node, path + ".when.node");
}

void Checker::check_fault(const FaultSpec& fault, const std::string& path) {
  check_pattern(fault.node, path + ".node");
  check_pattern(fault.other, path + ".other");
  const bool hits_messages = fault.kind == FaultKind::kLoseMessage || fault.kind == FaultKind::kDelayMessage ||
                             fault.kind == FaultKind::kDuplicateMessage;
  const bool takes_time = fault.kind == FaultKind::kHang || fault.kind == FaultKind::kDelayMessage ||
                          fault.kind == FaultKind::kPartition || fault.kind == FaultKind::kSlowLink;
  const bool takes_other = hits_messages || fault.kind == FaultKind::kPartition;
  need(hits_messages || !fault.node.empty(), path + ".node", "is missing: which node does it hit?");
  need(!takes_time || fault.lasts.ns > 0, path + ".lasts", "is missing: for how long? such as 2s");
  need(takes_other || fault.other.empty(), path + ".other", "only faults of messages and partition have another end");
  need(fault.kind != FaultKind::kPartition || !fault.other.empty(), path + ".other",
       "is missing: from whom is it cut off?");
  need((fault.kind == FaultKind::kFailCompute) != fault.what.empty(), path + ".what",
       fault.what.empty() ? "is missing: which operation fails? such as apply" : "only fail_compute has it");
}

void Checker::check_rule(std::size_t index, const std::string& path) {
  const RuleSpec& rule = scenario_.rules[index];
  const auto first = std::ranges::find(scenario_.rules, rule.id, &RuleSpec::id);
  need(!rule.id.empty(), path + ".id", "must not be empty");
  need(rule.id.empty() || first == scenario_.rules.begin() + static_cast<std::ptrdiff_t>(index), path + ".id",
       fmt::format("rule '{}' is there twice", rule.id));
  check_pattern(rule.match.node, path + ".on.node");
  check_pattern(rule.emit_node, path + ".emit.node");
  if (is_known_bad(path + ".do")) return;
  const bool makes = rule.act == RuleAct::kEmit || rule.act == RuleAct::kComplete;
  const bool sets = rule.act == RuleAct::kSet || rule.act == RuleAct::kFail || rule.act == RuleAct::kComplete;
  need(rule.act != RuleAct::kSet || !rule.set.empty(), path + ".set", "is missing: which field gets which value?");
  need(sets || rule.set.empty(), path + ".set", "only set, fail and complete have it");
  need((rule.act == RuleAct::kDelay) == (rule.delay.ns > 0), path + ".delay",
       rule.delay.ns > 0 ? "only delay has it" : "is missing: by how much? such as 10ms");
  need(rule.act != RuleAct::kEmit || !rule.emit_kind.empty(), path + ".emit", "is missing: what is made?");
  need(makes || (rule.emit_kind.empty() && rule.emit_fields.empty()), path + ".emit", "only emit and complete have it");
}

void Checker::check_interleave() {
  if (!scenario_.interleave.has_value()) return;
  const InterleaveSpec& spec = *scenario_.interleave;
  const std::string list = "scenario.interleave.points";
  need(spec.points.size() >= 2, list, fmt::format("at least 2 points have an order, got {}", spec.points.size()));
  for (std::size_t i = 0; i < spec.points.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", list, i);
    const auto first = std::ranges::find(spec.names, spec.names[i]);
    need(first == spec.names.begin() + static_cast<std::ptrdiff_t>(i), path + ".name",
         fmt::format("point '{}' is there twice", spec.names[i]));
    check_pattern(spec.points[i].node, path + ".node");
  }
}

void Checker::check_budget() {
  const BudgetSettings& budget = scenario_.budget;
  need(budget.heal_at <= budget.virtual_max, "scenario.budget.heal_at",
       fmt::format("{} is after the end of the run at {}", to_text(budget.heal_at), to_text(budget.virtual_max)));
  const auto updates = static_cast<std::int64_t>(scenario_.work.updates);
  std::int64_t least = 0;
  const bool fits =
      !__builtin_mul_overflow(updates, scenario_.train.step_time.ns, &least) && least <= budget.virtual_max.ns;
  if (!fits && !is_known_bad("scenario.work.updates") && !is_known_bad("scenario.train.step_time")) {
    add("scenario.budget.virtual", fmt::format("{} training steps of {} do not fit into {}", updates,
                                               to_text(scenario_.train.step_time), to_text(budget.virtual_max)));
  }
  if (shape_.has_value()) {
    const std::uint64_t ranks = std::uint64_t{shape_->engines} * shape_->engine_world;
    need(budget.engines_down_max <= ranks, "scenario.budget.engines_down_max",
         fmt::format("{} ranks of engines cannot be dead; there are {}", budget.engines_down_max, ranks));
  }
}

void Checker::check_expect(const ExpectSettings& expect, const std::string& path) {
  const bool has_violation = expect.verdict == Verdict::kSafety || expect.verdict == Verdict::kLiveness;
  if (!is_known_bad(path + ".verdict")) {
    constexpr std::string_view kOnly = "only with verdict: violation or liveness";
    need(has_violation || expect.invariant.empty(), path + ".invariant", std::string(kOnly));
    need(has_violation || expect.node.empty(), path + ".node", std::string(kOnly));
    need(has_violation || expect.version < 0, path + ".version", std::string(kOnly));
  }
  check_pattern(expect.node, path + ".node");
  if (!is_known_bad("scenario.work.updates")) {
    need(expect.published <= scenario_.work.updates, path + ".published",
         fmt::format("{} versions cannot be published by {} updates", expect.published, scenario_.work.updates));
  }
}

void Checker::check_defect() {
  if (is_known_bad("scenario.defect") || is_known_bad("scenario.with_defect")) return;
  need(scenario_.defect.empty() || scenario_.expect_defect.has_value(), "scenario.defect",
       "needs with_defect: what must be found in the half with the defect");
  need(!scenario_.expect_defect.has_value() || !scenario_.defect.empty(), "scenario.with_defect",
       "needs defect: which one is on in that half");
}

}  // namespace

int Places::line_of(std::string_view path) const {
  while (!path.empty()) {
    const auto place = std::ranges::find(lines_, path, &std::pair<std::string, int>::first);
    if (place != lines_.end()) return place->second;
    const std::size_t end = path.find_last_of(".[");
    path = path.substr(0, end == std::string_view::npos ? 0 : end);
  }
  return 0;
}

void check_scenario(const Scenario& scenario, const Places& places, std::vector<Problem>& problems) {
  Checker(scenario, places, problems).check_all();
}

}  // namespace areal::config
