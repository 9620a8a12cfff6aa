// Vectors of learning rates, and the worked examples of the same.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "engine/algo/lr_schedule.h"
#include "tests/vectors/examples.h"
#include "tests/vectors/registry.h"
#include "tests/vectors/tensors.h"

namespace areal::vectors {
namespace {

Outcome check_warmup(const Json& vector) {
  const Json& in = vector.at("inputs");
  const Json& steps = in.at("warmup_steps");
  const auto got = algo::warmup_steps(steps.is_null() ? std::nullopt : std::optional(steps.get<std::int64_t>()),
                                      in.at("warmup_steps_proportion"), in.at("total_train_steps"));
  const std::string miss = refusal_miss(vector, !got);
  if (!miss.empty() || !got) return first_miss({miss});
  if (vector.contains("expected")) {
    const Json& wanted = vector.at("expected");
    if (wanted.contains("warning") && wanted.at("warning") != got.value().both_given) return failed("warning");
    return expect_equal(wanted.at("steps"), got.value().steps);
  }
  return expect_equal(vector.at("outputs"),
                      {{"num_warmup_steps", got.value().steps}, {"warns", got.value().both_given}});
}

std::vector<double> rates(const algo::LrSchedule& schedule, const std::vector<std::int64_t>& steps) {
  std::vector<double> made;
  for (const std::int64_t step : steps) made.push_back(schedule.at(step));
  return made;
}

Outcome check_rates(const Json& vector, algo::LrForm form) {
  const Json& in = vector.at("inputs");
  const auto shape = algo::lr_shape_from(in.at("lr_scheduler_type").get<std::string>());
  if (!shape) return first_miss({refusal_miss(vector, true)});
  auto schedule = algo::LrSchedule::create({.base = in.at("base_lr"),
                                            .shape = *shape,
                                            .warmup = in.at("warmup_steps"),
                                            .total = in.at("total_train_steps"),
                                            .min_ratio = in.at("min_lr_ratio"),
                                            .form = form,
                                            .climbs_past_end = true});
  const std::string miss = refusal_miss(vector, !schedule);
  if (!miss.empty() || !schedule) return first_miss({miss});
  std::vector<double> got;
  for (std::int64_t step = 0; step < in.at("n_steps"); ++step, schedule->advance()) got.push_back(schedule->rate());
  return first_miss({values_miss("lr", vector.at("outputs").at("lr"), got, kFloat64)});
}

Outcome check_multiplier(const Json& vector) { return check_rates(vector, algo::LrForm::kMultiplier); }
Outcome check_absolute(const Json& vector) { return check_rates(vector, algo::LrForm::kAbsolute); }

algo::LrSettings example_settings(const Json& in) {
  return {.shape = algo::lr_shape_from(in.at("style").get<std::string>()).value(),
          .warmup = in.at("warmup"),
          .total = in.at("total"),
          .climbs_past_end = true};
}

Outcome check_example_multiplier(const Json& vector) {
  const Json& in = vector.at("inputs");
  algo::LrSettings settings = example_settings(in);
  settings.base = 1;
  settings.min_ratio = in.at("min_lr_ratio");
  const auto schedule = algo::LrSchedule::create(settings);
  if (!schedule) return failed(schedule.error().detail);
  return first_miss({values_miss("multiplier", vector.at("expected").at("multiplier"),
                                 rates(schedule.value(), in.at("steps")), tolerance_of(vector))});
}

Outcome check_example_absolute(const Json& vector) {
  const Json& in = vector.at("inputs");
  if (in.at("init_lr") != 0.0) return failed("the initial rate is always 0");
  algo::LrSettings settings = example_settings(in);
  settings.form = algo::LrForm::kAbsolute;
  settings.base = in.at("max_lr");
  settings.min_ratio = in.at("min_lr").get<double>() / settings.base;
  const auto schedule = algo::LrSchedule::create(settings);
  if (!schedule) return failed(schedule.error().detail);
  return first_miss({values_miss("lr", vector.at("expected").at("lr"), rates(schedule.value(), in.at("steps")),
                                 tolerance_of(vector))});
}

}  // namespace

void add_lr_schedule(std::vector<Checker>& registry) {
  registry.push_back({"lr_schedule", "get_num_warmup_steps", check_warmup});
  registry.push_back({"lr_schedule", "fsdp_lr", check_multiplier});
  registry.push_back({"lr_schedule", "megatron_lr", check_absolute});
  registry.push_back({"spec_examples", "lr.num_warmup_steps", check_warmup});
  registry.push_back({"spec_examples", "lr.schedule", check_example_multiplier});
  registry.push_back({"spec_examples", "lr.megatron", check_example_absolute});
}

}  // namespace areal::vectors
