// Worked examples of the language model's head.
#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/algo/lm_head.h"
#include "tests/vectors/examples.h"
#include "tests/vectors/registry.h"
#include "tests/vectors/tensors.h"

namespace areal::vectors {
namespace {

std::vector<double> all_logits(const algo::HeadInput& input, algo::LogitRounding rounding) {
  std::vector<double> logits;
  for (std::size_t token = 0; token < input.labels.size(); ++token) {
    const auto own = algo::head_logits(input, token, 0, input.weight.vocabulary(), rounding);
    logits.insert(logits.end(), own.begin(), own.end());
  }
  return logits;
}

std::vector<double> joined(const std::vector<std::vector<double>>& lists) {
  std::vector<double> all;
  for (const std::vector<double>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Outcome check_head(const Json& vector) {
  const Json& in = vector.at("inputs");
  const Json& wanted = vector.at("expected");
  const Tolerance tolerance = tolerance_of(vector);
  const std::vector<float> hidden = floats_of(flat(in.at("hidden")));
  const auto weight = algo::HeadWeight::from_float(floats_of(flat(in.at("weight"))), in.at("weight")[0].size());
  const std::vector<std::int64_t> labels = in.at("labels");
  const algo::HeadInput input{hidden, weight, {}, labels};
  auto group = algo::TensorGroup::even(weight.vocabulary(), in.at("tp_size"));
  const algo::HeadSettings settings{.temperature = in.at("temperature"), .chunk = in.at("chunk_size")};
  const auto got = algo::head_forward(input, group, settings);
  if (!got) return failed(got.error().detail);
  const auto slopes = algo::head_backward(input, group, settings, got.value(), std::vector<double>(labels.size(), 1.0));
  return first_miss(
      {values_miss("logits", flat(wanted.at("logits")), all_logits(input, settings.rounding), tolerance),
       values_miss("logprobs", wanted.at("logprobs"), got.value().logp, tolerance),
       values_miss("entropy", wanted.at("entropy"), got.value().entropy, tolerance),
       values_miss("local_max", flat(wanted.at("tp_local_max")), joined(got.value().local_max), tolerance),
       values_miss("hidden", flat(wanted.at("grad_hidden_of_sum_logprob")), slopes.hidden, tolerance),
       values_miss("weight", flat(wanted.at("grad_weight_of_sum_logprob")), slopes.weight, tolerance)});
}

// Stored as bf16, as a model keeps it; the inputs are exact in it.
std::vector<std::uint16_t> bf16_of(const std::vector<float>& values) {
  std::vector<std::uint16_t> stored;
  stored.reserve(values.size());
  for (const float value : values)
    stored.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
  return stored;
}

Outcome check_precision(const Json& vector) {
  const Json& in = vector.at("inputs");
  const std::vector<float> hidden = floats_of(flat(in.at("hidden_bf16")));
  const auto weight =
      algo::HeadWeight::from_bf16(bf16_of(floats_of(flat(in.at("weight_bf16")))), in.at("weight_bf16")[0].size());
  const std::vector<std::int64_t> labels(in.at("hidden_bf16").size(), 0);
  const algo::HeadInput input{hidden, weight, {}, labels};
  const Json& wanted = vector.at("expected");
  const Tolerance tolerance = tolerance_of(vector);
  return first_miss({values_miss("fp32", flat(wanted.at("logits_fp32_output")),
                                 all_logits(input, algo::LogitRounding::kFp32), tolerance),
                     values_miss("bf16", flat(wanted.at("logits_bf16_output")),
                                 all_logits(input, algo::LogitRounding::kBf16), {0, 0})});
}

}  // namespace

void add_lm_head(std::vector<Checker>& registry) {
  registry.push_back({"spec_examples", "lmhead.logprob_entropy", check_head});
  registry.push_back({"spec_examples", "lmhead.precision", check_precision});
}

}  // namespace areal::vectors
