// What the training arithmetic is compared with: touching the same memory, and torch.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/torch_process.h"

namespace areal::bench {

// Tokens of a packed batch: log-probabilities of three policies, advantages, and a mask that keeps runs of answers.
struct TokenArrays {
  std::vector<float> logprobs;
  std::vector<float> proximal;
  std::vector<float> old;
  std::vector<float> advantages;
  std::vector<std::uint8_t> mask;
};

TokenArrays make_tokens(std::size_t count, std::uint64_t seed);

// Reads three arrays and the mask and writes one, as a loss with its gradient does, with next to no arithmetic.
void touch_once(const TokenArrays& arrays, std::vector<float>& gradient);

struct TorchLoss {
  double seconds = 0;
  double loss = 0;
};

// bench/peers/algo_torch.py. One caller.
class AlgoTorch {
 public:
  static std::unique_ptr<AlgoTorch> start(const std::string& script, const TokenArrays& arrays, std::string& why);

  [[nodiscard]] const std::string& version() const { return process_->version(); }
  // Forward and backward of the named loss, on one thread.
  TorchLoss run(const std::string& loss);
  // Of the last run.
  std::vector<float> gradient(std::size_t count);

 private:
  explicit AlgoTorch(std::unique_ptr<TorchProcess> process) : process_(std::move(process)) {}

  std::unique_ptr<TorchProcess> process_;
};

}  // namespace areal::bench
