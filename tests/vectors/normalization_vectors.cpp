// Vectors of both normalizations, in both formats.
//
// Two answers of the reference are defects that ours does not share: it masks by multiplication, so that a NaN at a
// masked element spreads, and without group sizes it leaves rows behind the last whole group with mean 0 and std 0.
// There the defect must explain the vector, and ours must differ from it as it should.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/algo/masked_normalization.h"
#include "engine/algo/normalization.h"
#include "engine/algo/usable_group.h"
#include "tests/vectors/examples.h"

namespace areal::vectors {
namespace {

using algo::NormBatch;
using algo::NormConfig;
using algo::NormLevel;

struct Case {
  NormConfig config;
  bool is_config_valid = true;
  std::size_t rows = 0;
  std::size_t width = 1;
  std::vector<float> x;
  std::optional<std::vector<std::uint8_t>> mask;
  std::optional<std::vector<std::int64_t>> sizes;

  [[nodiscard]] Result<std::vector<float>> run() const {
    const algo::Rows layout = algo::Rows::padded(rows, width);
    NormBatch batch{layout, x, std::nullopt, std::nullopt};
    if (mask) batch.mask = *mask;
    if (sizes) batch.group_sizes = *sizes;
    return algo::normalize(config, batch);
  }

  // Whether there was anything to hide.
  bool hide_masked() {
    bool hidden = false;
    for (std::size_t at = 0; mask && at < x.size(); ++at) {
      if ((*mask)[at] != 0) continue;
      hidden = hidden || !std::isfinite(x[at]);
      x[at] = 0;
    }
    return hidden;
  }
};

void read_level(const Json& config, const char* key, Case& made, NormLevel& level) {
  if (!config.contains(key)) return;
  if (config.at(key).is_null()) {
    level = NormLevel::kNone;
  } else if (const auto known = algo::norm_level_from(config.at(key).get<std::string>())) {
    level = *known;
  } else {
    made.is_config_valid = false;
  }
}

Case case_of(const Json& inputs) {
  Case made;
  const Json& config = inputs.at("config");
  read_level(config, "mean_level", made, made.config.mean_level);
  read_level(config, "std_level", made, made.config.std_level);
  made.config.leave_one_out = config.value("mean_leave1out", false);
  made.config.unbiased = config.value("std_unbiased", true);
  made.config.eps = config.value("eps", 1e-5);
  made.config.group_size = config.value("group_size", 1);
  const Sides sides = sides_of(inputs.at("x"));
  made.rows = sides.rows;
  made.width = sides.width;
  made.x = floats_of(flat(inputs.at("x")));
  if (inputs.contains("loss_mask") && !inputs.at("loss_mask").is_null())
    made.mask = mask_of(flat(inputs.at("loss_mask")));
  if (inputs.contains("group_sizes") && !inputs.at("group_sizes").is_null()) {
    made.sizes = inputs.at("group_sizes").get<std::vector<std::int64_t>>();
  }
  return made;
}

bool has_tail(const Case& made) {
  return !made.sizes && algo::uses_group_statistics(made.config) && made.config.group_size > 0 &&
         made.rows % static_cast<std::size_t>(made.config.group_size) != 0;
}

// Refused; whole groups as the vector says; the tail divided by eps alone.
Outcome check_tail(const Case& made, const Json& wanted, Tolerance tolerance) {
  if (made.run()) return failed("a tail of rows without a group is not refused");
  const std::size_t whole = made.rows - made.rows % static_cast<std::size_t>(made.config.group_size);
  Case head = made;
  head.rows = whole;
  head.x.resize(whole * made.width);
  const auto out = head.run();
  if (!out) return failed(out.error().detail);
  std::vector<float> all = *out;
  for (std::size_t at = all.size(); at < made.x.size(); ++at) {
    all.push_back(static_cast<float>(static_cast<double>(made.x[at]) / made.config.eps));
  }
  return first_miss({values_miss("out", wanted, all, tolerance)});
}

// Every expected value is the NaN that leaks; ours does not depend on what is masked.
Outcome check_leak(const Case& made, const Json& wanted) {
  for (const float value : floats_of(wanted)) {
    if (!std::isnan(value)) return failed("the reference did not leak");
  }
  Case hidden = made;
  hidden.hide_masked();
  const auto ours = made.run();
  const auto clean = hidden.run();
  if (!ours || !clean) return failed("refused");
  if (!std::ranges::all_of(*ours, [](float value) { return std::isfinite(value); }))
    return failed("a masked value leaks");
  return expect_equal(Json(*clean), Json(*ours));
}

Outcome check_case(const Json& inputs, const Json* wanted, Tolerance tolerance) {
  const Case made = case_of(inputs);
  if (wanted == nullptr) return expect_equal(false, made.is_config_valid && made.run().has_value());
  if (!made.is_config_valid) return failed("a level is unknown");
  const Json values = flat(*wanted);
  if (has_tail(made)) return check_tail(made, values, tolerance);
  if (Case(made).hide_masked()) return check_leak(made, values);
  const auto out = made.run();
  if (!out) return failed(out.error().detail);
  return first_miss({values_miss("out", values, *out, tolerance)});
}

Outcome check_normalization(const Json& vector) {
  // Of outputs above 1e4 the last digits are those of a division by eps.
  constexpr Tolerance kLarge{2e-5, 2e-6};
  if (vector.contains("error")) return check_case(vector.at("inputs"), nullptr, kNormalized);
  const Json& wanted = vector.at("outputs").at("out");
  const auto values = floats_of(wanted);
  const bool is_large = std::ranges::any_of(values, [](float value) { return std::abs(value) > 1e4F; });
  return check_case(vector.at("inputs"), &wanted, is_large ? kLarge : kNormalized);
}

Outcome check_example(const Json& vector) {
  return check_case(vector.at("inputs"), &vector.at("expected").at("out"), tolerance_of(vector));
}

Outcome check_masked(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  algo::MaskedNorm norm;
  norm.unbiased = inputs.at("unbiased");
  norm.eps = number_of(inputs.at("eps"));
  if (!inputs.at("dim").is_null()) norm.dims = inputs.at("dim").get<std::vector<std::size_t>>();
  const auto shape = shape_of(inputs.at("x"));
  auto x = floats_of(inputs.at("x"));
  std::optional<std::vector<std::uint8_t>> mask;
  if (!inputs.at("mask").is_null()) mask = mask_of(inputs.at("mask"));
  const auto run = [&] {
    return algo::masked_normalize(norm, shape, x, mask ? std::optional<algo::Mask>(*mask) : std::nullopt);
  };
  const auto out = run();
  if (!out) return failed(out.error().detail);
  bool leaks = false;
  for (std::size_t at = 0; mask && at < x.size(); ++at) {
    if ((*mask)[at] != 0 || std::isfinite(x[at])) continue;
    leaks = true;
    x[at] = 0;
  }
  if (!leaks) return first_miss({values_miss("out", vector.at("outputs").at("out"), *out, kNormalized)});
  for (const float value : floats_of(vector.at("outputs").at("out"))) {
    if (!std::isnan(value)) return failed("the reference did not leak");
  }
  if (!std::ranges::all_of(*out, [](float value) { return std::isfinite(value); }))
    return failed("a masked value leaks");
  return expect_equal(Json(*run()), Json(*out));
}

Outcome check_min_usable(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  algo::UsableGroupRule rule;
  if (!inputs.at("explicit").is_null()) rule.given = inputs.at("explicit").get<std::int64_t>();
  rule.has_group_statistics = inputs.at("uses_group_statistics");
  rule.group_size = inputs.at("target_group_size");
  const auto least = algo::min_usable_group_size(rule);
  if (vector.at("expected").contains("error")) return expect_equal(false, least.has_value());
  if (!least) return failed(least.error().detail);
  return expect_equal(vector.at("expected").at("value"), *least);
}

// Whether a configuration is accepted.
Outcome check_config(const Json& vector) {
  const Case made = case_of({{"config", vector.at("inputs")}, {"x", Json::array()}});
  return expect_equal(!vector.contains("error"), made.is_config_valid && algo::check(made.config).has_value());
}

}  // namespace

void add_normalization(std::vector<Checker>& registry) {
  registry.push_back({"normalization", "Normalization.__call__", check_normalization});
  registry.push_back({"masked_normalization", "masked_normalization", check_masked});
  registry.push_back({"config_gates", "NormConfig", check_config});
  registry.push_back({"spec_examples", "norm.apply", check_example});
  registry.push_back({"spec_examples", "norm.resolve_min_usable", check_min_usable});
}

}  // namespace areal::vectors
