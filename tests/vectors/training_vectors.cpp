// Worked examples of what surrounds a training step: clipping, steps, frequencies, seeds, determinism, adapters,
// statistics.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "engine/algo/determinism.h"
#include "engine/algo/gradient_clip.h"
#include "engine/algo/logp_drift.h"
#include "engine/algo/lora_names.h"
#include "engine/algo/sampling_seed.h"
#include "engine/algo/train_step.h"
#include "tests/vectors/examples.h"
#include "tests/vectors/registry.h"
#include "tests/vectors/tensors.h"

namespace areal::vectors {
namespace {

template <class Value>
std::optional<Value> maybe(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<Value>());
}

Outcome check_clip(const Json& vector) {
  std::vector<float> gradients = floats_of(vector.at("inputs").at("grads"));
  const double sum = algo::square_sum(gradients);
  const algo::ClipDecision decision = algo::decide_clip({{sum}}, vector.at("inputs").at("max_norm"));
  algo::apply_clip(decision, gradients);
  const Json& wanted = vector.at("expected");
  if (wanted.contains("optimizer_stepped")) {
    const bool zeroed = gradients == std::vector<float>(gradients.size(), 0.0F);
    return expect_equal(wanted.at("optimizer_stepped"), decision.step || !zeroed);
  }
  const Tolerance tolerance = tolerance_of(vector);
  return first_miss({value_miss("norm", wanted.at("norm"), decision.norm, tolerance),
                     value_miss("coeff", wanted.at("coeff"), decision.coefficient, tolerance),
                     values_miss("clipped", wanted.at("clipped"), gradients, tolerance)});
}

Outcome check_next_step(const Json& vector) {
  const Json& in = vector.at("inputs");
  const algo::TrainStep last{in.at("epoch"), in.at("epoch_step"), in.at("global_step")};
  const algo::TrainStep next = last.next(in.at("steps_per_epoch"));
  return expect_equal(
      vector.at("expected"),
      {{"next", {{"epoch", next.epoch}, {"epoch_step", next.epoch_step}, {"global_step", next.global_step}}},
       {"recovery_version", next.global_step},
       {"start_step", next.global_step}});
}

Outcome check_frequency(const Json& vector) {
  const Json& in = vector.at("inputs");
  if (!in.at("freq_secs").is_null()) return failed("no example has a time");
  auto control = algo::FrequencyControl::create({.epochs = maybe<std::int64_t>(in.at("freq_epochs")),
                                                 .steps = maybe<std::int64_t>(in.at("freq_steps")),
                                                 .time = {}});
  if (!control) return failed(control.error().detail);
  Json fired = Json::array();
  for (const Json& ends : in.at("epoch_end_flags")) fired.push_back(control->check(ends != 0));
  return expect_equal(vector.at("expected"), {{"fired", fired}});
}

Outcome check_sampling_seed(const Json& vector) {
  const Json& in = vector.at("inputs");
  return expect_equal(vector.at("expected").at("seed"),
                      algo::sampling_seed(in.at("identity").get<std::string>(), in.at("request_index")));
}

Outcome check_process_seed(const Json& vector) {
  const Json& in = vector.at("inputs");
  return expect_equal(vector.at("expected").at("seed"),
                      algo::process_seed(in.at("base_seed"), in.at("key").get<std::string>()));
}

Outcome check_environment(const Json& vector) {
  const auto nccl = maybe<std::string>(vector.at("inputs").at("NCCL_ALGO"));
  const auto cublas = maybe<std::string>(vector.at("inputs").at("CUBLAS_WORKSPACE_CONFIG"));
  const auto got = algo::deterministic_environment(nccl, cublas);
  return expect_equal(vector.at("expected"),
                      {{"NCCL_ALGO", got.nccl_algo},
                       {"CUBLAS_WORKSPACE_CONFIG", got.cublas_workspace_config},
                       {"NVTE_ALLOW_NONDETERMINISTIC_ALGO", got.nvte_allow_nondeterministic_algo}});
}

Outcome check_adapter_requests(const Json& vector) {
  const Json& in = vector.at("inputs");
  const auto got = algo::adapter_requests(in.at("lora_name").get<std::string>(), in.at("version"), in.at("keep"));
  return expect_equal(vector.at("expected"),
                      {{"load", got.load}, {"unload", got.unload ? Json(*got.unload) : Json(nullptr)}});
}

Outcome check_adapters_kept(const Json& vector) {
  return expect_equal(vector.at("expected").at("keep"),
                      algo::adapters_kept(vector.at("inputs").at("max_head_offpolicyness")));
}

Outcome check_peft_keys(const Json& vector) {
  Json names = Json::array();
  for (const Json& name : vector.at("inputs").at("names")) names.push_back(algo::peft_key(name.get<std::string>()));
  return expect_equal(vector.at("expected"), {{"names", names}});
}

Outcome check_drift(const Json& vector) {
  const Json& in = vector.at("inputs");
  const auto got = algo::logp_drift(floats_of(flat(in.at("old_logp"))), floats_of(flat(in.at("logprobs"))),
                                    mask_of(flat(in.at("loss_mask"))));
  const Json& wanted = vector.at("expected");
  const Tolerance tolerance = tolerance_of(vector);
  return first_miss({values_miss("logp_diff", flat(wanted.at("logp_diff")), got.difference, tolerance),
                     values_miss("logp_abs_diff", flat(wanted.at("logp_abs_diff")), got.absolute, tolerance),
                     value_miss("avg_signed", wanted.at("avg_signed"), got.mean, tolerance),
                     value_miss("avg_abs", wanted.at("avg_abs"), got.mean_absolute, tolerance)});
}

}  // namespace

void add_training(std::vector<Checker>& registry) {
  registry.push_back({"spec_examples", "optim.grad_clip", check_clip});
  registry.push_back({"spec_examples", "recover.next_step", check_next_step});
  registry.push_back({"spec_examples", "freq.control", check_frequency});
  registry.push_back({"spec_examples", "det.sampling_seed", check_sampling_seed});
  registry.push_back({"spec_examples", "det.rank_seed", check_process_seed});
  registry.push_back({"spec_examples", "det.env_resolution", check_environment});
  registry.push_back({"spec_examples", "lora.disk_update_requests", check_adapter_requests});
  registry.push_back({"spec_examples", "lora.keep_versions", check_adapters_kept});
  registry.push_back({"spec_examples", "lora.peft_keys", check_peft_keys});
  registry.push_back({"spec_examples", "stats.logp_drift", check_drift});
}

}  // namespace areal::vectors
