#include "engine/algo/generation_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"

namespace areal::algo {

std::optional<StopReason> stop_reason_from(std::string_view name) {
  if (name == "stop") return StopReason::kStop;
  if (name == "tool_calls") return StopReason::kToolCalls;
  if (name == "length") return StopReason::kLength;
  if (name == "abort") return StopReason::kAbort;
  return std::nullopt;
}

Status check_generated(std::span<const std::int32_t> tokens, std::span<const float> logprobs) {
  if (tokens.size() != logprobs.size()) {
    return Error{Errc::kInvalid, fmt::format("{} tokens with {} log-probabilities", tokens.size(), logprobs.size())};
  }
  for (std::size_t at = 0; at < logprobs.size(); ++at) {
    if (!std::isfinite(logprobs[at])) {
      return Error{Errc::kInvalid, fmt::format("log-probability {} is not finite", at)};
    }
  }
  return Unit{};
}

Result<GenerationCall> GenerationCall::create(std::span<const std::int32_t> prompt, std::int64_t max_tokens,
                                              std::int64_t max_new_tokens, std::int64_t samples) {
  if (samples != 1) return Error{Errc::kInvalid, fmt::format("{} samples in one call", samples)};
  const std::int64_t budget = std::min(max_tokens - static_cast<std::int64_t>(prompt.size()), max_new_tokens);
  if (budget <= 0) {
    return Error{Errc::kInvalid, fmt::format("no room for a token: prompt {}, at most {} in all and {} new",
                                             prompt.size(), max_tokens, max_new_tokens)};
  }
  GenerationCall call;
  call.prompt_.assign(prompt.begin(), prompt.end());
  call.budget_ = budget;
  return call;
}

bool GenerationCall::finished() const { return !under_way_ && (last_ != StopReason::kAbort || budget_ == 0); }

GenerationRequest GenerationCall::send(std::int64_t version) {
  AREAL_CHECK(!finished() && !under_way_);
  AREAL_CHECK(version >= pinned_);
  pinned_ = version;
  under_way_ = true;
  GenerationRequest request{prompt_, budget_, version};
  request.input_ids.insert(request.input_ids.end(), tokens_.begin(), tokens_.end());
  return request;
}

Status GenerationCall::receive(const GenerationSegment& segment) {
  AREAL_CHECK(under_way_);
  AREAL_TRY(check_generated(segment.tokens, segment.logprobs));
  const auto made = static_cast<std::int64_t>(segment.tokens.size());
  if (made > budget_) return Error{Errc::kInvalid, fmt::format("{} tokens, {} were asked for", made, budget_)};
  tokens_.insert(tokens_.end(), segment.tokens.begin(), segment.tokens.end());
  logprobs_.insert(logprobs_.end(), segment.logprobs.begin(), segment.logprobs.end());
  versions_.insert(versions_.end(), segment.tokens.size(), pinned_);
  budget_ -= made;
  under_way_ = false;
  last_ = segment.stop_reason;
  return Unit{};
}

StopReason GenerationCall::stop_reason() const {
  AREAL_CHECK(finished());
  return last_ == StopReason::kAbort ? StopReason::kLength : last_;
}

}  // namespace areal::algo
