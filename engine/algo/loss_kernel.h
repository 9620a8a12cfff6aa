// What the kernels of the token losses have in common: their arguments, and where they are for each instruction set.
//
// Included by files with target flags, so it stays free of code: an inline function compiled there could be what the
// linker keeps for everybody. All kernels give equal bits. Not for callers: they use ppo_loss.h and its neighbours.
#pragma once
#include <cstddef>
#include <cstdint>

namespace areal::algo {

// Flat arrays of `count` tokens. `kept` is where loss and gradient count; `counted` is the mask of statistics, which is
// the same or wider. No alignment is needed.
struct TokenArrays {
  const float* logprobs = nullptr;
  const float* base = nullptr;  // Proximal log-probabilities; SAPO: old ones.
  const float* advantages = nullptr;
  const std::uint8_t* counted = nullptr;
  const std::uint8_t* kept = nullptr;
  const float* weights = nullptr;  // Of behaviour; null: 1 everywhere.
  std::size_t count = 0;
  float scale = 0;  // 1 / the loss's denominator
};

// Null where nobody asked for it; flags are bytes of 0 and 1.
struct TokenResults {
  float* gradient = nullptr;
  float* ratio = nullptr;
  float* loss = nullptr;
  float* log_ratio = nullptr;
  std::uint8_t* is_clipped = nullptr;
  std::uint8_t* is_dual_clipped = nullptr;
  float* gate = nullptr;
  float* gate_of_gain = nullptr;
  float* gate_of_loss = nullptr;
};

struct RatioBand {
  float low = 0;
  float high = 0;
  bool has_dual = false;
  float dual = 0;
};

struct GateSlopes {
  float of_gain = 1;
  float of_loss = 1;
};

struct ValueArrays {
  const float* values = nullptr;
  const float* old_values = nullptr;
  const float* targets = nullptr;
  const std::uint8_t* kept = nullptr;  // Null: every element.
  std::size_t count = 0;
  float scale = 0;
};

struct ValueBand {
  float clip = 0;
  bool is_huber = false;
  float delta = 10;
};

// Each returns the sum of what the kept tokens add, in double and in their order, before any scale.
struct LossKernels {
  double (*ppo)(const RatioBand&, const TokenArrays&, const TokenResults&) = nullptr;
  double (*cispo)(const RatioBand&, const TokenArrays&, const TokenResults&) = nullptr;
  double (*sapo)(const GateSlopes&, const TokenArrays&, const TokenResults&) = nullptr;
  double (*critic)(const ValueBand&, const ValueArrays&, const TokenResults&) = nullptr;
  std::size_t (*count)(const std::uint8_t* mask, std::size_t length) = nullptr;
};

const LossKernels& portable_loss_kernels();
// Null where this machine or this build lacks the instructions.
const LossKernels* avx2_loss_kernels();
// The fastest of this machine.
const LossKernels& loss_kernels();

}  // namespace areal::algo
