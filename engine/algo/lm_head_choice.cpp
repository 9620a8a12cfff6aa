#include "engine/algo/lm_head_choice.h"

#include <fmt/format.h>

namespace areal::algo {

Result<HeadKind> choose_head(const HeadOptions& options) {
  if (options.chunk_size < 0) return Error{Errc::kInvalid, fmt::format("a chunk of {} tokens", options.chunk_size)};
  if (options.chunk_size > 0) {
    if (!options.chunked_logits) return Error{Errc::kInvalid, "a chunk size without chunked logits"};
    if (options.entropy_requires_grad) return Error{Errc::kInvalid, "chunked logits give entropy no gradient"};
    if (options.multi_token_prediction) return Error{Errc::kInvalid, "chunked logits with multi-token prediction"};
  }
  if (options.chunked_logits) return options.fp32_head ? HeadKind::kChunkedFp32Inputs : HeadKind::kChunkedNativeInputs;
  return options.fp32_head ? HeadKind::kFp32Patched : HeadKind::kNative;
}

bool is_head_module(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);  // npos + 1 is 0.
  return last == "output_layer" || last == "lm_head";
}

}  // namespace areal::algo
