// Which head a model gets, from its settings, and which modules are heads at all.
//
// Pure functions. Source: the engine settings of AReaL's chunked and fp32 heads.
#pragma once
#include <cstdint>
#include <string_view>

#include "engine/base/result.h"

namespace areal::algo {

struct HeadOptions {
  bool chunked_logits = false;
  bool fp32_head = false;
  bool entropy_requires_grad = false;
  bool multi_token_prediction = false;
  std::int64_t chunk_size = 0;  // Tokens; 0: the head's own.
};

enum class HeadKind : std::uint8_t {
  kNative,               // As the framework has it.
  kFp32Patched,          // Its forward, with fp32 operands and output.
  kChunkedNativeInputs,  // Replaced: fp32 output, operands as they are.
  kChunkedFp32Inputs,    // Replaced: fp32 output and operands.
};

// kInvalid: a chunk size below 0, or above 0 without chunked logits, with gradients of the entropy, or with multi-token
// prediction.
Result<HeadKind> choose_head(const HeadOptions& options);

// "output_layer" or "lm_head", alone or as the last part of a dotted name.
bool is_head_module(std::string_view name);

}  // namespace areal::algo
