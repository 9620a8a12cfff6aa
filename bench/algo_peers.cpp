#include "bench/algo_peers.h"

#include <cstdio>
#include <cstdlib>

#include "engine/base/rng.h"

namespace areal::bench {

TokenArrays make_tokens(std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  const auto uniform = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * static_cast<double>(rng.draw_u64() >> 11) * 0x1p-53);
  };
  TokenArrays arrays;
  bool is_answer = false;
  std::uint64_t left = 0;
  for (std::size_t at = 0; at < count; ++at) {
    if (left == 0) {
      is_answer = !is_answer;
      left = (is_answer ? 200 : 50) + rng.draw_below(400);
    }
    --left;
    arrays.logprobs.push_back(uniform(-3, 0));
    arrays.proximal.push_back(arrays.logprobs.back() + uniform(-0.4, 0.4));
    arrays.old.push_back(arrays.proximal.back() + uniform(-0.2, 0.2));
    arrays.advantages.push_back(uniform(-2, 2));
    arrays.mask.push_back(is_answer ? 1 : 0);
  }
  return arrays;
}

void touch_once(const TokenArrays& arrays, std::vector<float>& gradient) {
  const std::size_t count = arrays.mask.size();
  gradient.resize(count);
  const float* const a = arrays.logprobs.data();
  const float* const b = arrays.proximal.data();
  const float* const c = arrays.advantages.data();
  const std::uint8_t* const mask = arrays.mask.data();
  float* const out = gradient.data();
#pragma GCC ivdep
  for (std::size_t at = 0; at < count; ++at) out[at] = mask[at] != 0 ? a[at] + b[at] + c[at] : 0.0F;
}

std::unique_ptr<AlgoTorch> AlgoTorch::start(const std::string& script, const TokenArrays& arrays, std::string& why) {
  const auto bytes = [](const auto& values) { return std::as_bytes(std::span(values)); };
  auto process = TorchProcess::start(script,
                                     {{"logprobs", bytes(arrays.logprobs)},
                                      {"proximal", bytes(arrays.proximal)},
                                      {"old", bytes(arrays.old)},
                                      {"advantages", bytes(arrays.advantages)},
                                      {"mask", bytes(arrays.mask)}},
                                     1, why);
  return process ? std::unique_ptr<AlgoTorch>(new AlgoTorch(std::move(process))) : nullptr;
}

TorchLoss AlgoTorch::run(const std::string& loss) {
  const std::string answer = process_->ask(loss);
  TorchLoss result;
  if (std::sscanf(answer.c_str(), "%lf %lf", &result.seconds, &result.loss) != 2) {
    std::fprintf(stderr, "algo_bench: algo_torch.py ended: %s\n", answer.c_str());
    std::exit(1);
  }
  return result;
}

std::vector<float> AlgoTorch::gradient(std::size_t count) {
  std::vector<float> values(count);
  process_->ask("gradient");
  if (!process_->read("gradient", std::as_writable_bytes(std::span(values)))) values.clear();
  return values;
}

}  // namespace areal::bench
