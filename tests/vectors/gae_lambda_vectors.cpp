// Vectors of λ by sequence, in both formats.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "engine/algo/gae_lambda.h"
#include "tests/vectors/examples.h"

namespace areal::vectors {
namespace {

using algo::LambdaKind;

Outcome check_rule(const Json& vector, LambdaKind kind, const char* argument) {
  const Json& value = vector.at("inputs").at("kwargs").at(argument);
  if (value.is_boolean()) return skipped("the value is a number by type");
  const auto lambda = algo::lambdas({kind, number_of(value)}, integers_of(vector.at("inputs").at("timestep_lengths")));
  if (vector.contains("error")) return expect_equal(false, lambda.has_value());
  if (!lambda) return failed(lambda.error().detail);
  return first_miss({values_miss("gae_lambda", vector.at("outputs").at("gae_lambda"), *lambda, kElementwise)});
}

Outcome check_constant(const Json& vector) { return check_rule(vector, LambdaKind::kConstant, "value"); }
Outcome check_vapo(const Json& vector) { return check_rule(vector, LambdaKind::kLengthAdaptive, "alpha"); }
Outcome check_relative(const Json& vector) { return check_rule(vector, LambdaKind::kRelativePosition, "q"); }

// The reference's name of a function; none of a constant.
Json function_of(LambdaKind kind) {
  switch (kind) {
    case LambdaKind::kConstant:
      return nullptr;
    case LambdaKind::kLengthAdaptive:
      return "vapo_length_adaptive_gae";
    case LambdaKind::kRelativePosition:
      return "relative_position_gae_lambda";
  }
  return nullptr;
}

// What a configuration says, as text.
Outcome check_resolve(const Json& vector) {
  const Json& given = vector.at("inputs").at("gae_lambda");
  const auto rule = algo::lambda_rule_from(given.is_string() ? given.get<std::string>() : given.dump(), 0.5);
  if (vector.contains("error")) return expect_equal(false, rule.has_value());
  if (!rule) return failed(rule.error().detail);
  const Json& wanted = vector.at("outputs");
  if (wanted.at("custom").get<bool>()) return expect_equal(wanted.at("function"), function_of(rule->kind));
  if (rule->kind != LambdaKind::kConstant) return failed("a constant is taken for a function");
  return expect_equal(wanted.at("value"), rule->value);
}

Outcome check_example(const Json& vector, LambdaKind kind, const char* argument) {
  const Json& inputs = vector.at("inputs");
  const auto lambda = algo::lambdas({kind, number_of(inputs.at(argument))}, integers_of(inputs.at("lengths")));
  if (!lambda) return failed(lambda.error().detail);
  return first_miss({values_miss("lambdas", vector.at("expected").at("lambdas"), *lambda, tolerance_of(vector))});
}

Outcome check_example_vapo(const Json& vector) { return check_example(vector, LambdaKind::kLengthAdaptive, "alpha"); }
Outcome check_example_relative(const Json& vector) { return check_example(vector, LambdaKind::kRelativePosition, "q"); }

}  // namespace

void add_gae_lambda(std::vector<Checker>& registry) {
  registry.push_back({"gae_lambda", "constant_gae_lambda", check_constant});
  registry.push_back({"gae_lambda", "vapo_length_adaptive_gae", check_vapo});
  registry.push_back({"gae_lambda", "relative_position_gae_lambda", check_relative});
  registry.push_back({"gae_lambda", "resolve_gae_lambda_fn", check_resolve});
  registry.push_back({"spec_examples", "gae.lambda_vapo", check_example_vapo});
  registry.push_back({"spec_examples", "gae.lambda_relative", check_example_relative});
}

}  // namespace areal::vectors
