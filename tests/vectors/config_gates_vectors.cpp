// Vectors of the pair registry, of what a pair must say, and of settings of training that are refused.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/algo/gae_lambda.h"
#include "engine/algo/grpo_loss.h"
#include "engine/algo/lr_schedule.h"
#include "engine/algo/sapo_loss.h"
#include "engine/algo/time_steps.h"
#include "engine/config/delta_gate.h"
#include "engine/proto/pair_registry.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

using namespace proto;

Outcome check_info(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const Result<PairMode> mode =
      check_pair_info(inputs.at("pair_name").get<std::string>(), inputs.at("mode").get<std::string>());
  if (vector.contains("error")) {
    if (mode) return failed("accepted, but wanted " + vector.at("error").dump());
    return expect_equal(vector.at("error").at("message"), mode.error().detail);
  }
  return mode ? expect_equal(vector.at("outputs"), {{"ok", true}}) : failed("refused: " + mode.error().detail);
}

// Names as numbers, in order of appearance.
class Names {
 public:
  PairId id_of(const std::string& name) {
    const auto place = std::ranges::find(names_, name);
    if (place != names_.end()) return PairId{static_cast<std::uint64_t>(place - names_.begin()) + 1};
    names_.push_back(name);
    return PairId{names_.size()};
  }
  const std::string& name_of(PairId id) const { return names_.at(id.value - 1); }

 private:
  std::vector<std::string> names_;
};

Outcome check_registry(const Json& vector) {
  PairRegistry registry;
  Names names;
  Json outputs = Json::object();
  std::string error;
  for (const Json& line : vector.at("inputs").at("ops")) {
    const std::string text = line;
    const std::string name = text.substr(std::min(text.size(), text.find(' ') + 1));
    if (text.starts_with("register ")) {
      error = refusal_text(registry.register_pair(names.id_of(name), PairMode::kAwex), name);
    } else if (text.starts_with("unregister ")) {
      if (!registry.unregister(names.id_of(name)).has_value()) outputs["missing_unregister"] = true;
    } else if (text == "list") {
      outputs["pairs"] = Json::array();
      for (const PairId id : registry.list()) outputs["pairs"].push_back(names.name_of(id));
    } else {
      return failed("unknown line " + text);
    }
  }
  if (vector.contains("error")) return expect_equal(vector.at("error").at("message"), error);
  return error.empty() ? expect_equal(vector.at("outputs"), outputs) : failed("refused: " + error);
}

// Of the actor's many settings those that have a counterpart here: what decides the number of optimizer steps, the
// surrogate, the proximal method, lambda and the time step.
constexpr std::array<std::string_view, 9> kActorSettings = {"enable_delta_weight_update",
                                                            "prox_logp_method",
                                                            "ppo_n_minibatches",
                                                            "use_cispo_loss",
                                                            "use_sapo_loss",
                                                            "eps_clip_higher",
                                                            "sapo_tau_pos",
                                                            "gae_lambda",
                                                            "gae_timestep_unit"};

Status surrogate_of(const Json& inputs) {
  algo::GrpoSettings settings;
  settings.uses_cispo = inputs.value("use_cispo_loss", false);
  settings.uses_sapo = inputs.value("use_sapo_loss", false);
  if (inputs.contains("eps_clip_higher")) settings.clip_higher = inputs.at("eps_clip_higher").get<double>();
  AREAL_TRY(algo::check_grpo(settings));
  if (!settings.uses_sapo) return Unit{};
  algo::PolicyLoss nothing;
  const algo::SapoSettings sapo{.tau_of_gain = inputs.value("sapo_tau_pos", algo::SapoSettings().tau_of_gain)};
  return algo::sapo_loss(sapo, {}, algo::Statistics::kLeaveOut, nothing);
}

// Empty, or what is wrong besides the number of mini-batches.
std::string actor_refusal(const Json& inputs) {
  if (const Status surrogate = surrogate_of(inputs); !surrogate) return surrogate.error().detail;
  if (inputs.contains("prox_logp_method") &&
      !algo::proximal_method_from(inputs.at("prox_logp_method").get<std::string>())) {
    return "unknown method";
  }
  if (inputs.contains("gae_timestep_unit") &&
      !algo::time_step_from(inputs.at("gae_timestep_unit").get<std::string>())) {
    return "unknown time step";
  }
  if (!inputs.contains("gae_lambda")) return {};
  const Json& lambda = inputs.at("gae_lambda");
  const auto rule = algo::lambda_rule_from(lambda.is_string() ? lambda.get<std::string>() : lambda.dump(), 1);
  return rule ? std::string() : rule.error().detail;
}

Outcome check_actor(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  for (const auto& [name, value] : inputs.items()) {
    if (std::ranges::find(kActorSettings, name) == kActorSettings.end()) return skipped("other settings");
  }
  if (inputs.value("gae_lambda", Json()) == "a.b.c") return skipped("a function of the user's own");
  const std::string refusal = actor_refusal(inputs);
  const Result<std::uint32_t> minibatches = config::resolve_minibatches(
      inputs.value("enable_delta_weight_update", false), inputs.value("prox_logp_method", ""),
      inputs.value("ppo_n_minibatches", config::kDefaultMinibatches));
  if (vector.contains("error")) {
    if (!minibatches) return expect_equal(vector.at("error").at("message"), minibatches.error().detail);
    return expect_equal(true, !refusal.empty());
  }
  if (!refusal.empty()) return failed("refused: " + refusal);
  if (!minibatches) return failed("refused: " + minibatches.error().detail);
  return expect_equal(vector.at("outputs").at("fields").at("ppo_n_minibatches"), *minibatches);
}

// Whether both ways to say the warmup are a warning. What is below 0 the reference finds when it counts steps.
Outcome check_optimizer(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  if (inputs.at("warmup_steps") < 0) return skipped("numbers below 0 are accepted until they are used");
  const auto warmup = algo::warmup_steps(inputs.at("warmup_steps").get<std::int64_t>(),
                                         inputs.at("warmup_steps_proportion").get<double>(), 100);
  if (!warmup) return failed(warmup.error().detail);
  return expect_equal(!vector.at("outputs").at("warned").empty(), warmup->both_given);
}

}  // namespace

void add_config_gates(std::vector<Checker>& registry) {
  registry.push_back({"config_gates", "PPOActorConfig", check_actor});
  registry.push_back({"config_gates", "OptimizerConfig", check_optimizer});
  registry.push_back({"config_gates", "PairInfo", check_info});
  registry.push_back({"config_gates", "PairRegistry", check_registry});
}

}  // namespace areal::vectors
