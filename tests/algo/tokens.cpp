#include "tests/algo/tokens.h"

#include <gtest/gtest.h>

#include "engine/algo/cispo_loss.h"
#include "engine/algo/ppo_loss.h"
#include "engine/algo/sapo_loss.h"
#include "engine/base/rng.h"
#include "tests/algo/random_values.h"

namespace areal::algo {

namespace {

template <class Loss, class Settings>
PolicyLoss run(Loss loss, const Settings& settings, const PolicyTokens& tokens) {
  PolicyLoss result;
  const Status status = loss(settings, tokens, Statistics::kFill, result);
  EXPECT_TRUE(status.has_value()) << (status ? "" : status.error().detail);
  return result;
}

RejectionSettings rejecting(RejectionLevel level, RejectionAction action) {
  return checked({level, action, RejectionMetric::kRatio, RejectionAggregate::kMean, 1.3, 0.8}).value();
}

PpoSettings ppo(RatioLevel level, std::optional<double> dual, std::optional<RejectionSettings> rejection) {
  return {0.2, 0.28, dual, level, rejection};
}

constexpr auto kToken = RatioLevel::kToken;
constexpr auto kSequence = RatioLevel::kSequence;

}  // namespace

Rows Batch::rows() const {
  std::vector<std::int32_t> bounds = {0};
  for (const std::size_t length : lengths) bounds.push_back(bounds.back() + static_cast<std::int32_t>(length));
  return Rows::packed(bounds);
}

Batch random_batch(const std::vector<std::size_t>& lengths, std::uint64_t seed) {
  Rng rng(seed);
  const auto uniform = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * static_cast<double>(rng.draw_u64() >> 11) * 0x1p-53);
  };
  Batch batch;
  batch.lengths = lengths;
  for (const std::size_t length : lengths) {
    for (std::size_t at = 0; at < length; ++at) {
      batch.logprobs.push_back(uniform(-3, 0));
      batch.proximal.push_back(batch.logprobs.back() + uniform(-0.5, 0.5));
      batch.old.push_back(batch.proximal.back() + uniform(-0.4, 0.4));
      batch.advantages.push_back(uniform(-2, 2));
      batch.mask.push_back(uniform(0, 1) < 0.75F ? 1 : 0);
    }
  }
  return batch;
}

std::span<const float> row_of(const Batch& batch, std::span<const float> values, std::size_t row) {
  return batch.rows().of(values, row);
}

Batch rows_of(const Batch& batch, const std::vector<std::size_t>& chosen) {
  const Rows rows = batch.rows();
  Batch result;
  for (const std::size_t row : chosen) {
    result.lengths.push_back(batch.lengths[row]);
    for (std::size_t at = rows.begin(row); at < rows.end(row); ++at) {
      result.logprobs.push_back(batch.logprobs[at]);
      result.proximal.push_back(batch.proximal[at]);
      result.old.push_back(batch.old[at]);
      result.advantages.push_back(batch.advantages[at]);
      result.mask.push_back(batch.mask[at]);
    }
  }
  return result;
}

Batch padded(const Batch& batch, std::size_t width) {
  Batch result;
  for (std::size_t row = 0; row < batch.lengths.size(); ++row) {
    const Batch one = rows_of(batch, {row});
    const auto fill = [&](std::vector<float>& to, const std::vector<float>& from) {
      to.insert(to.end(), from.begin(), from.end());
      to.resize(to.size() + width - from.size(), kNan);
    };
    fill(result.logprobs, one.logprobs);
    fill(result.proximal, one.proximal);
    fill(result.old, one.old);
    fill(result.advantages, one.advantages);
    result.mask.insert(result.mask.end(), one.mask.begin(), one.mask.end());
    result.mask.resize(result.logprobs.size(), 0);
    result.lengths.push_back(width);
  }
  return result;
}

const std::vector<NamedLoss>& all_losses() {
  static const std::vector<NamedLoss> losses = {
      {"ppo", [](const PolicyTokens& in) { return run(ppo_actor_loss, ppo(kToken, {}, {}), in); }},
      {"ppo dual", [](const PolicyTokens& in) { return run(ppo_actor_loss, ppo(kToken, 1.1, {}), in); }},
      {"gspo", [](const PolicyTokens& in) { return run(ppo_actor_loss, ppo(kSequence, 1.5, {}), in); }},
      {"ppo masking",
       [](const PolicyTokens& in) {
         return run(ppo_actor_loss, ppo(kToken, {}, rejecting(RejectionLevel::kToken, RejectionAction::kMask)), in);
       }},
      {"ppo clamping",
       [](const PolicyTokens& in) {
         return run(ppo_actor_loss, ppo(kToken, {}, rejecting(RejectionLevel::kToken, RejectionAction::kClamp)), in);
       }},
      {"gspo masking sequences",
       [](const PolicyTokens& in) {
         return run(ppo_actor_loss, ppo(kSequence, {}, rejecting(RejectionLevel::kSequence, RejectionAction::kMask)),
                    in);
       }},
      {"cispo", [](const PolicyTokens& in) { return run(cispo_loss, CispoSettings{0.2, 0.28, {}}, in); }},
      {"cispo masking",
       [](const PolicyTokens& in) {
         return run(cispo_loss, CispoSettings{0.2, 0.28, rejecting(RejectionLevel::kToken, RejectionAction::kMask)},
                    in);
       }},
      {"sapo", [](const PolicyTokens& in) { return run(sapo_loss, SapoSettings{1.0, 1.05, kToken}, in); }},
      {"sapo of sequences",
       [](const PolicyTokens& in) { return run(sapo_loss, SapoSettings{1.0, 1.05, kSequence}, in); }},
  };
  return losses;
}

}  // namespace areal::algo
