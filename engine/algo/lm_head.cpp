#include "engine/algo/lm_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/base/check.h"

namespace areal::algo {

namespace {

float rounded_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return value;  // A NaN.
  const std::uint32_t last_kept = bits >> 16 & 1U;
  return std::bit_cast<float>((bits + 0x7FFFU + last_kept) & 0xFFFF0000U);
}

// x of one token on one rank.
std::vector<double> scaled_logits(const HeadInput& input, std::size_t token, const TensorGroup& group, std::size_t rank,
                                  const HeadSettings& settings) {
  const std::vector<float> logits = head_logits(input, token, group.begin(rank), group.end(rank), settings.rounding);
  std::vector<double> scaled(logits.begin(), logits.end());
  for (double& value : scaled) value /= settings.temperature;
  return scaled;
}

Status check_head(const HeadInput& input, const TensorGroup& group, const HeadSettings& settings) {
  if (!std::isfinite(settings.temperature) || settings.temperature <= 0) {
    return Error{Errc::kInvalid, fmt::format("temperature {}", settings.temperature)};
  }
  if (settings.chunk == 0) return Error{Errc::kInvalid, "a chunk of no tokens"};
  const std::size_t words = input.weight.vocabulary();
  if (input.hidden.size() != input.labels.size() * input.weight.hidden() || group.vocabulary() != words ||
      (!input.bias.empty() && input.bias.size() != words)) {
    return Error{Errc::kInvalid, "operands of different sizes"};
  }
  for (const std::int64_t label : input.labels) {
    if (label < 0 || static_cast<std::size_t>(label) >= words) {
      return Error{Errc::kInvalid, fmt::format("label {} of a vocabulary of {}", label, words)};
    }
  }
  return Unit{};
}

using PerRank = std::vector<std::vector<double>>;

// The tokens [begin, end), on all ranks.
void forward_chunk(const HeadInput& input, TensorGroup& group, const HeadSettings& settings, std::size_t begin,
                   std::size_t end, HeadOutput& output) {
  const std::size_t tokens = end - begin;
  std::vector<PerRank> logits(group.size());  // [rank][token][word]: all that is held of them.
  PerRank maxima(group.size());
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    std::size_t held = 0;
    for (std::size_t token = begin; token < end; ++token) {
      std::vector<double>& own = logits[rank].emplace_back(scaled_logits(input, token, group, rank, settings));
      held += own.size();
      maxima[rank].push_back(own.empty() ? -std::numeric_limits<double>::infinity() : std::ranges::max(own));
    }
    output.logits_held_max = std::max(output.logits_held_max, held);
    output.local_max[rank].insert(output.local_max[rank].end(), maxima[rank].begin(), maxima[rank].end());
  }
  const std::vector<double> max = group.reduce_max(maxima);
  PerRank parts(group.size());
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    parts[rank].assign(3 * tokens, 0.0);
    for (std::size_t at = 0; at < tokens; ++at) {
      const auto label = static_cast<std::size_t>(input.labels[begin + at]);
      if (label >= group.begin(rank) && label < group.end(rank)) {
        parts[rank][at] = logits[rank][at][label - group.begin(rank)];
      }
      for (const double logit : logits[rank][at]) {
        const double share = std::exp(logit - max[at]);
        parts[rank][tokens + at] += share;
        if (share != 0) parts[rank][2 * tokens + at] += share * logit;  // A word that is ruled out is at -infinity.
      }
    }
  }
  const std::vector<double> sums = group.reduce_sum(parts);
  for (std::size_t at = 0; at < tokens; ++at) {
    const double exp_sum = sums[tokens + at];
    const double log_sum = std::log(exp_sum) + max[at];
    output.logp.push_back(sums[at] - log_sum);
    output.entropy.push_back(log_sum - sums[2 * tokens + at] / exp_sum);
    output.max.push_back(max[at]);
    output.exp_sum.push_back(exp_sum);
  }
}

}  // namespace

HeadWeight HeadWeight::from_float(std::span<const float> values, std::size_t hidden) {
  AREAL_CHECK(hidden > 0 && values.size() % hidden == 0);
  HeadWeight made;
  made.values_.assign(values.begin(), values.end());
  made.hidden_ = hidden;
  return made;
}

HeadWeight HeadWeight::from_bf16(std::span<const std::uint16_t> values, std::size_t hidden) {
  std::vector<float> cast;
  cast.reserve(values.size());
  for (const std::uint16_t value : values) cast.push_back(std::bit_cast<float>(std::uint32_t{value} << 16));
  return from_float(cast, hidden);
}

TensorGroup TensorGroup::even(std::size_t vocabulary, std::size_t size) {
  AREAL_CHECK(size > 0);
  std::vector<std::size_t> bounds = {0};
  bounds.reserve(size + 1);
  for (std::size_t rank = 0; rank < size; ++rank) {
    bounds.push_back(bounds.back() + vocabulary / size + (rank < vocabulary % size ? 1 : 0));
  }
  return TensorGroup(std::move(bounds));
}

TensorGroup::TensorGroup(std::vector<std::size_t> bounds) : bounds_(std::move(bounds)) {
  AREAL_CHECK(bounds_.size() >= 2 && bounds_.front() == 0 && std::ranges::is_sorted(bounds_));
}

std::vector<double> TensorGroup::reduce_max(std::span<const std::vector<double>> ranks) {
  ++collectives_;
  std::vector<double> made = ranks.front();
  for (const std::vector<double>& own : ranks.subspan(1)) {
    for (std::size_t at = 0; at < made.size(); ++at) made[at] = std::max(made[at], own[at]);
  }
  return made;
}

std::vector<double> TensorGroup::reduce_sum(std::span<const std::vector<double>> ranks) {
  ++collectives_;
  std::vector<double> made = ranks.front();
  for (const std::vector<double>& own : ranks.subspan(1)) {
    for (std::size_t at = 0; at < made.size(); ++at) made[at] += own[at];
  }
  return made;
}

std::vector<float> head_logits(const HeadInput& input, std::size_t token, std::size_t begin, std::size_t end,
                               LogitRounding rounding) {
  const std::size_t width = input.weight.hidden();
  const std::span<const float> hidden = input.hidden.subspan(token * width, width);
  std::vector<float> logits;
  logits.reserve(end - begin);
  for (std::size_t word = begin; word < end; ++word) {
    const std::span<const float> weight = input.weight.row(word);
    double sum = input.bias.empty() ? 0.0 : input.bias[word];
    for (std::size_t unit = 0; unit < width; ++unit) sum += static_cast<double>(hidden[unit]) * weight[unit];
    const auto logit = static_cast<float>(sum);
    logits.push_back(rounding == LogitRounding::kBf16 ? rounded_to_bf16(logit) : logit);
  }
  return logits;
}

Result<HeadOutput> head_forward(const HeadInput& input, TensorGroup& group, const HeadSettings& settings) {
  AREAL_TRY(check_head(input, group, settings));
  HeadOutput output;
  output.local_max.resize(group.size());
  const std::size_t tokens = input.labels.size();
  for (std::size_t begin = 0; begin < tokens; begin += settings.chunk) {
    forward_chunk(input, group, settings, begin, std::min(begin + settings.chunk, tokens), output);
  }
  return output;
}

HeadGradients head_backward(const HeadInput& input, TensorGroup& group, const HeadSettings& settings,
                            const HeadOutput& output, std::span<const double> logp_gradient, bool frozen) {
  const std::size_t tokens = input.labels.size();
  const std::size_t width = input.weight.hidden();
  AREAL_CHECK(logp_gradient.size() == tokens && output.logp.size() == tokens);
  HeadGradients made;
  if (!frozen) made.weight.assign(input.weight.vocabulary() * width, 0.0);
  if (!frozen && !input.bias.empty()) made.bias.assign(input.weight.vocabulary(), 0.0);
  for (std::size_t begin = 0; begin < tokens; begin += settings.chunk) {
    const std::size_t end = std::min(begin + settings.chunk, tokens);
    PerRank hidden(group.size(), std::vector<double>((end - begin) * width, 0.0));
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      for (std::size_t token = begin; token < end; ++token) {
        const std::vector<double> scaled = scaled_logits(input, token, group, rank, settings);
        for (std::size_t at = 0; at < scaled.size(); ++at) {
          const std::size_t word = group.begin(rank) + at;
          const double chance = std::exp(scaled[at] - output.max[token]) / output.exp_sum[token];
          const double hit = static_cast<std::size_t>(input.labels[token]) == word ? 1.0 : 0.0;
          const double slope = logp_gradient[token] * (hit - chance) / settings.temperature;
          for (std::size_t unit = 0; unit < width; ++unit) {
            hidden[rank][(token - begin) * width + unit] += slope * input.weight.row(word)[unit];
            if (!frozen) made.weight[word * width + unit] += slope * input.hidden[token * width + unit];
          }
          if (!made.bias.empty()) made.bias[word] += slope;
        }
      }
    }
    const std::vector<double> summed = group.reduce_sum(hidden);
    made.hidden.insert(made.hidden.end(), summed.begin(), summed.end());
  }
  return made;
}

}  // namespace areal::algo
