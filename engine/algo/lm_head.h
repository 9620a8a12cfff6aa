// Reference of a language model's head: log-probability of the label and entropy of each token, without ever holding
// logits of all tokens at once, with the vocabulary cut over the ranks of a tensor-parallel group.
//
// With x = (hidden . weight[v] + bias[v]) / temperature and m = max over the whole vocabulary:
//   logp = x_label - m - ln sum exp(x - m)
//   d logp / d hidden = (weight[label] - sum_v p_v weight[v]) / temperature
//   entropy = ln sum exp(x - m) + m - sum(p x), p = softmax(x), where p = 0 adds 0; it has no gradient
// Each chunk of tokens needs two collectives of the head's own group: MAX of the local maxima, then SUM of [logit of
// the label, 0 where another rank has it | sum exp(x - m) | sum exp(x - m) * x]. Operands are fp32: a bf16 weight is
// cast once, and forward and backward read that copy. A logit is added up in double, in the order of the hidden units,
// then rounded to fp32, or on to bf16 for the native form: results do not depend on chunks, and on the cut of the
// vocabulary only by the order of the group's sums. Slow and exact: what fast heads are checked against. All ranks of
// the group run in one call. Source: the chunked vocabulary-parallel head of AReaL.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/result.h"

namespace areal::algo {

// fp32 copy of a head's weight, [vocabulary, hidden].
class HeadWeight {
 public:
  // REQUIRES: as many values as vocabulary * hidden.
  static HeadWeight from_float(std::span<const float> values, std::size_t hidden);
  static HeadWeight from_bf16(std::span<const std::uint16_t> values, std::size_t hidden);  // The one cast.

  [[nodiscard]] std::size_t hidden() const { return hidden_; }
  [[nodiscard]] std::size_t vocabulary() const { return hidden_ == 0 ? 0 : values_.size() / hidden_; }
  [[nodiscard]] std::span<const float> row(std::size_t word) const {
    return std::span(values_).subspan(word * hidden_, hidden_);
  }

 private:
  std::vector<float> values_;
  std::size_t hidden_ = 0;
};

// The ranks that share the head: rank r has the words [bounds[r], bounds[r + 1]). It counts what is asked of it.
class TensorGroup {
 public:
  // Even parts; the first ranks get one word more if they do not come out even. REQUIRES: size > 0.
  static TensorGroup even(std::size_t vocabulary, std::size_t size);
  // REQUIRES: begins with 0, never falls, at least two bounds.
  explicit TensorGroup(std::vector<std::size_t> bounds);

  [[nodiscard]] std::size_t size() const { return bounds_.size() - 1; }
  [[nodiscard]] std::size_t begin(std::size_t rank) const { return bounds_[rank]; }
  [[nodiscard]] std::size_t end(std::size_t rank) const { return bounds_[rank + 1]; }
  [[nodiscard]] std::size_t vocabulary() const { return bounds_.back(); }

  // One vector of each rank, all of one length; every rank then has the same result.
  std::vector<double> reduce_max(std::span<const std::vector<double>> ranks);
  std::vector<double> reduce_sum(std::span<const std::vector<double>> ranks);
  [[nodiscard]] std::uint64_t collectives() const { return collectives_; }

 private:
  std::vector<std::size_t> bounds_;
  std::uint64_t collectives_ = 0;
};

enum class LogitRounding : std::uint8_t { kFp32, kBf16 };

struct HeadSettings {
  double temperature = 1;
  std::size_t chunk = 1024;  // Tokens whose logits are there at once.
  LogitRounding rounding = LogitRounding::kFp32;
};

// Of one forward pass. What backward() needs besides the operands is two numbers a token.
struct HeadOutput {
  std::vector<double> logp;
  std::vector<double> entropy;
  std::vector<double> max;                     // m, before it is subtracted.
  std::vector<double> exp_sum;                 // sum exp(x - m).
  std::vector<std::vector<double>> local_max;  // [rank][token].
  std::size_t logits_held_max = 0;             // The most that one rank had at once.
};

struct HeadInput {
  std::span<const float> hidden;  // [T, hidden].
  const HeadWeight& weight;
  std::span<const float> bias;           // [vocabulary], or empty.
  std::span<const std::int64_t> labels;  // [T].
};

// Unscaled logits of one token, of the words [begin, end).
std::vector<float> head_logits(const HeadInput& input, std::size_t token, std::size_t begin, std::size_t end,
                               LogitRounding rounding);

// kInvalid: a temperature that is not above 0, no chunk, a label outside the vocabulary, operands that do not fit each
// other or the group. No tokens give empty vectors.
Result<HeadOutput> head_forward(const HeadInput& input, TensorGroup& group, const HeadSettings& settings);

struct HeadGradients {
  std::vector<double> hidden;  // [T, hidden].
  std::vector<double> weight;  // [vocabulary, hidden]; empty if the head is frozen.
  std::vector<double> bias;    // [vocabulary]; empty without a bias or if the head is frozen.
};

// Of sum over tokens of logp_gradient * logp. The hidden's is one SUM a chunk. REQUIRES: `output` of the same input,
// group and settings; a gradient for each token.
HeadGradients head_backward(const HeadInput& input, TensorGroup& group, const HeadSettings& settings,
                            const HeadOutput& output, std::span<const double> logp_gradient, bool frozen = false);

}  // namespace areal::algo
