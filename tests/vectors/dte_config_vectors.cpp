// Vectors of the settings of delta updates: gates, variables, knobs, and what a completed step used.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "engine/config/delta_environment.h"
#include "engine/config/delta_gate.h"
#include "engine/delta/hyper_parameters.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

using namespace config;

// The wanted error is the whole text of the reference.
Outcome expect_error(const Json& vector, const std::string& got) {
  return expect_equal(vector.at("error").at("message"), got);
}

Environment environment_from(const Json& object) {
  Environment environment;
  for (const auto& [name, value] : object.items()) environment.set(name, value.get<std::string>());
  return environment;
}

Json json_of(const Environment& environment) {
  Json object = Json::object();
  for (const Variable& variable : environment.variables()) object[variable.name] = variable.value;
  return object;
}

std::vector<SpecVariables> specs_from(const Json& holder) {
  std::vector<SpecVariables> specs;
  const Json list = holder.value("scheduling_spec", Json());
  if (list.is_null()) return specs;
  for (const Json& spec : list) {
    specs.push_back(spec.contains("env_vars") ? std::optional(environment_from(spec.at("env_vars"))) : std::nullopt);
  }
  return specs;
}

Json json_of(const std::vector<SpecVariables>& specs) {
  Json list = Json::array();
  for (const SpecVariables& spec : specs) list.push_back(spec.has_value() ? json_of(*spec) : Json());
  return list;
}

DeltaGateInput gate_from(const Json& config) {
  const Json& actor = config.at("actor");
  const Json& rollout = config.at("rollout");
  return {.enabled = actor.value("enable_delta_weight_update", false),
          .strategy = rollout.at("scheduling_strategy").get<std::string>(),
          .method = actor.at("weight_update_delta_method").get<std::string>(),
          .anchor_interval = actor.at("weight_update_anchor_interval").get<std::int64_t>(),
          .actor_backend = actor.at("backend").get<std::string>(),
          .rollout_backend = rollout.at("backend").get<std::string>(),
          .actor_version = actor.at("_version").get<std::string>(),
          .rollout_version = rollout.at("_version").get<std::string>(),
          .update_mode = actor.at("weight_update_mode").get<std::string>(),
          .use_lora = actor.at("use_lora").get<bool>()};
}

Outcome check_export(const Json& vector) {
  const Json& config = vector.at("inputs").at("config");
  const DeltaGateInput input = gate_from(config);
  const Environment before = environment_from(vector.at("inputs").at("environ"));
  const std::vector<SpecVariables> actor_before = specs_from(config.at("actor"));
  const std::vector<SpecVariables> rollout_before = specs_from(config.at("rollout"));
  Environment driver = before;
  std::vector<SpecVariables> actor = actor_before;
  std::vector<SpecVariables> rollout = rollout_before;
  const Result<Environment> exported = export_delta_environment(input, driver, actor, rollout);
  if (vector.contains("error")) {
    if (exported) return failed("accepted, but wanted " + vector.at("error").dump());
    if (driver != before || actor != actor_before || rollout != rollout_before) return failed("refused, but changed");
    return expect_error(vector, exported.error().detail);
  }
  if (!exported) return failed("refused: " + exported.error().detail);
  return expect_equal(vector.at("outputs"), {{"exported", json_of(*exported)},
                                             {"environ", json_of(driver)},
                                             {"actor_env", json_of(actor)},
                                             {"rollout_env", json_of(rollout)}});
}

Outcome check_world(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const Status checked = check_delta_world(inputs.at("infer_world_size").get<std::int64_t>(),
                                           inputs.at("train_world_size").get<std::int64_t>(),
                                           inputs.at("combined_world_size").get<std::int64_t>());
  if (vector.contains("error")) return checked ? failed("accepted") : expect_error(vector, checked.error().detail);
  return checked ? expect_equal(vector.at("outputs"), {{"ok", true}}) : failed("refused: " + checked.error().detail);
}

Outcome check_snapshot(const Json& vector) {
  const Result<DeltaEnvironment> read = DeltaEnvironment::read(environment_from(vector.at("inputs").at("env")));
  if (vector.contains("error")) return read ? failed("accepted") : expect_error(vector, read.error().detail);
  if (!read) return failed("refused: " + read.error().detail);
  return expect_equal(vector.at("outputs"), {{"delta_transfer", read->delta_transfer()},
                                             {"separation_weight_update", read->separation_weight_update()},
                                             {"anchor_interval", read->anchor_interval()},
                                             {"enabled", read->enabled()}});
}

// A name and its fall-backs as the reference's helpers take them. Keeps the text that the views point to.
struct Lookup {
  explicit Lookup(const Json& inputs)
      : environment(environment_from(inputs.at("env"))),
        name(inputs.at("kwargs").at("name").get<std::string>()),
        fallbacks(inputs.at("kwargs").value("fallback_names", std::vector<std::string>())),
        views(fallbacks.begin(), fallbacks.end()) {}

  [[nodiscard]] std::optional<std::string_view> find(bool blank_is_set) const {
    return find_variable(environment, {name, views, blank_is_set});
  }

  Environment environment;
  std::string name;
  std::vector<std::string> fallbacks;
  std::vector<std::string_view> views;
};

Outcome check_variable(const Json& vector) {
  const Json& kwargs = vector.at("inputs").at("kwargs");
  const Lookup lookup(vector.at("inputs"));
  const auto found = lookup.find(kwargs.value("allow_empty", false));
  const Json got = found.has_value() ? Json(std::string(*found)) : kwargs.value("default", Json());
  return expect_equal(vector.at("outputs").at("value"), got);
}

Outcome check_flag(const Json& vector) {
  const Json& kwargs = vector.at("inputs").at("kwargs");
  const Lookup lookup(vector.at("inputs"));
  const std::string standard = kwargs.value("default", "false");
  const std::vector<std::string> words = kwargs.value("truthy_values", std::vector<std::string>{"true", "1"});
  const std::vector<std::string_view> truthy(words.begin(), words.end());
  // Without other names to try, a blank value is a value that is not true.
  const std::string_view found = lookup.find(lookup.fallbacks.empty()).value_or(standard);
  const bool strips = kwargs.value("strip_value", false);
  return expect_equal(vector.at("outputs").at("value"), is_truthy(strips ? trimmed(found) : found, truthy));
}

Outcome check_step_settings(const Json& vector) {
  const Json& group = vector.at("inputs").at("param_group");
  const auto optional = [&group](const char* name) {
    return group.contains(name) ? std::optional(group.at(name).get<double>()) : std::nullopt;
  };
  delta::ParameterGroup input;
  input.recorded_rate = optional("_areal_last_step_lr");
  input.present_rate = optional("lr");
  input.weight_decay = optional("weight_decay");
  input.epsilon = optional("eps");
  if (group.contains("betas")) input.betas = std::pair(group.at("betas").at(0), group.at("betas").at(1));
  input.bias_correction = group.value("bias_correction", true);
  const auto settings = delta::completed_step_settings(input);
  Json got;
  if (settings.has_value()) {
    got = {settings->learning_rate, settings->weight_decay, settings->beta1, settings->beta2, settings->epsilon};
  }
  return expect_equal(vector.at("outputs").at("hparams"), got);
}

Outcome check_window(const Json& vector) {
  const Result<DeltaEnvironment> read = DeltaEnvironment::read(environment_from(vector.at("inputs").at("env")));
  if (!read) return failed("refused: " + read.error().detail);
  return expect_equal(vector.at("outputs").at("bytes"), read->tuning().window);
}

Outcome check_dense(const Json& vector) {
  const Result<DeltaEnvironment> read = DeltaEnvironment::read(environment_from(vector.at("inputs").at("env")));
  if (!read) return failed("refused: " + read.error().detail);
  Json got = Json::array();
  for (const Json& name : vector.at("inputs").at("names"))
    got.push_back(read->is_always_dense(name.get<std::string>()));
  return expect_equal(vector.at("outputs").at("force_dense"), got);
}

}  // namespace

void add_dte_config(std::vector<Checker>& registry) {
  registry.push_back({"dte_config", "apply_dte_config_envvars", check_export});
  registry.push_back({"dte_config", "validate_dte_world_size", check_world});
  registry.push_back({"dte_config", "DTERuntimeConfig.from_env", check_snapshot});
  registry.push_back({"dte_config", "get_env_var", check_variable});
  registry.push_back({"dte_config", "get_bool_env_var", check_flag});
  registry.push_back({"dte_config", "_adamw_hparams", check_step_settings});
  registry.push_back({"dte_config", "_inversion_allreduce_window_bytes", check_window});
  registry.push_back({"dte_config", "_inversion_force_dense_param", check_dense});
}

}  // namespace areal::vectors
