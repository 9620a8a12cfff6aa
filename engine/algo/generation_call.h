// One generation that may be interrupted by weight updates: what to ask next, and which version each token carries.
//
// A token's label is the version read before its request was sent: what changes while the request is under way does not
// change it, so that a label is never newer than the weights. An interrupted request comes back with what it has, and
// the next one goes on behind it. The simulated servers of engine/proto/rollout_pool.h say which version
// they served a segment with, so that there the version before the request is a lower bound only. A value; not safe to
// share between threads. Source: interruptible generation of AReaL.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace areal::algo {

enum class StopReason : std::uint8_t { kStop, kToolCalls, kLength, kAbort };
std::optional<StopReason> stop_reason_from(std::string_view name);  // "stop", "tool_calls", "length", "abort"

struct GenerationRequest {
  std::vector<std::int32_t> input_ids;
  std::int64_t max_new_tokens = 0;
  std::int64_t version = 0;
};

// What a server answers.
struct GenerationSegment {
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;
  StopReason stop_reason = StopReason::kStop;
};

// kInvalid: not exactly one log-probability for each token, or one that is not finite. Nothing at all is valid.
Status check_generated(std::span<const std::int32_t> tokens, std::span<const float> logprobs);

class GenerationCall {
 public:
  // `max_tokens`: prompt and output together. kInvalid: no room for a token, or not exactly one sample: each sample of
  // a prompt is a call of its own.
  static Result<GenerationCall> create(std::span<const std::int32_t> prompt, std::int64_t max_tokens,
                                       std::int64_t max_new_tokens, std::int64_t samples = 1);

  [[nodiscard]] bool finished() const;
  // REQUIRES: not finished, nothing under way, `version` not below an earlier one.
  GenerationRequest send(std::int64_t version);
  // kInvalid: check_generated() refuses it, or it has more tokens than were asked for; the request is still under way
  // then. REQUIRES: a request is under way.
  Status receive(const GenerationSegment& segment);

  [[nodiscard]] const std::vector<std::int32_t>& input_tokens() const { return prompt_; }
  [[nodiscard]] const std::vector<std::int32_t>& tokens() const { return tokens_; }
  [[nodiscard]] const std::vector<float>& logprobs() const { return logprobs_; }
  [[nodiscard]] const std::vector<std::int64_t>& versions() const { return versions_; }  // One for each token.
  // An abort that ends the call counts as length. REQUIRES: finished.
  [[nodiscard]] StopReason stop_reason() const;

 private:
  std::vector<std::int32_t> prompt_;
  std::int64_t budget_ = 0;  // Tokens still to be made.
  std::vector<std::int32_t> tokens_;
  std::vector<float> logprobs_;
  std::vector<std::int64_t> versions_;
  std::int64_t pinned_ = 0;
  bool under_way_ = false;
  StopReason last_ = StopReason::kAbort;
};

}  // namespace areal::algo
