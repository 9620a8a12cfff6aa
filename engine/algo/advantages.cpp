#include "engine/algo/advantages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/algo/behaviour_logprobs.h"
#include "engine/algo/gae.h"
#include "engine/algo/next_token.h"
#include "engine/algo/padding.h"

namespace areal::algo {

namespace {

// A NaN would turn every advantage into one, and pass each comparison on its way there.
Status check_numbers(const AdvantageConfig& config) {
  const std::pair<const char*, double> numbers[] = {{"reward_bias", config.reward_bias},
                                                    {"reward_scaling", config.reward_scaling},
                                                    {"kl_ctl", config.kl_ctl},
                                                    {"discount", config.discount}};
  for (const auto& [name, value] : numbers) {
    if (!std::isfinite(value)) return Error{Errc::kInvalid, fmt::format("{} must be finite, got {}", name, value)};
  }
  if (config.reward_clip >= 0) return Unit{};
  return Error{Errc::kInvalid, fmt::format("reward_clip must be at least 0, got {}", config.reward_clip)};
}

class Preparation {
 public:
  Preparation(const AdvantageConfig& config, const AdvantageInput& input)
      : config_(config), input_(input), rows_(input.rows) {
    check_sizes();
  }

  Result<Advantages> run() {
    AREAL_TRY(check());
    AREAL_TRY(scale_rewards());
    align();
    set_kl();
    place_outcomes();
    AREAL_TRY(estimate());
    if (config_.adv_norm) {
      const NormBatch batch{rows_, out_.advantages, Mask(out_.trained), input_.group_sizes};
      auto normalized = normalize(*config_.adv_norm, batch);
      if (!normalized) return std::move(normalized).error();
      out_.advantages = *std::move(normalized);
    }
    return std::move(out_);
  }

 private:
  void check_sizes() const {
    const std::size_t elements = rows_.elements();
    AREAL_CHECK(input_.rewards.size() == rows_.size());
    AREAL_CHECK(input_.attention.size() == elements);
    AREAL_CHECK(input_.trained.size() == elements);
    AREAL_CHECK(input_.behaviour.size() == elements);
    AREAL_CHECK(!input_.proximal || input_.proximal->size() == elements);
    AREAL_CHECK(!input_.reference || input_.reference->size() == elements);
    AREAL_CHECK(!input_.values || input_.values->size() == elements);
    AREAL_CHECK(!input_.turn_ids || input_.turn_ids->size() == elements);
    AREAL_CHECK(!input_.is_cut_off || input_.is_cut_off->size() == rows_.size());
  }

  [[nodiscard]] bool takes_proximal() const { return !config_.is_decoupled && config_.is_recomputed; }

  [[nodiscard]] Status check() const {
    AREAL_TRY(check_numbers(config_));
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (rows_.length(row) == 0) return Error{Errc::kInvalid, fmt::format("row {} has no elements", row)};
    }
    AREAL_TRY(check_prompts(rows_, input_.trained));
    if (config_.kl_ctl != 0 && !input_.reference && !config_.kl_without_reference) {
      return Error{Errc::kInvalid, fmt::format("kl_ctl {} without a reference policy: set it to 0", config_.kl_ctl)};
    }
    if (takes_proximal() && !input_.proximal) return Error{Errc::kInvalid, "recomputed log-probabilities are missing"};
    if (config_.no_eos == NoEos::kStopReason && !input_.is_cut_off) {
      return Error{Errc::kInvalid, "why generation stopped is missing"};
    }
    if (config_.time_step == TimeStep::kTurn && !input_.turn_ids) {
      return Error{Errc::kInvalid, "gae_timestep_unit 'turn' requires rollout data to include 'turn_ids'"};
    }
    return Unit{};
  }

  Status scale_rewards() {
    out_.rewards.assign(input_.rewards.begin(), input_.rewards.end());
    if (config_.overlong) {
      add_overlong_penalty(*config_.overlong, rows_, input_.trained, std::span<float>(out_.rewards));
    }
    const auto bias = static_cast<float>(config_.reward_bias);
    const auto scaling = static_cast<float>(config_.reward_scaling);
    const auto clip = static_cast<float>(config_.reward_clip);
    for (float& reward : out_.rewards) reward = std::clamp((reward + bias) * scaling, -clip, clip);
    if (!config_.reward_norm) return Unit{};
    const Rows one_each = Rows::padded(rows_.size(), 1);
    auto normalized = normalize(*config_.reward_norm, {one_each, out_.rewards, std::nullopt, input_.group_sizes});
    if (!normalized) return std::move(normalized).error();
    out_.rewards = *std::move(normalized);
    return Unit{};
  }

  // `values` where trained, else 0.
  [[nodiscard]] std::vector<float> kept(std::span<const float> values) const {
    std::vector<float> kept(values.size(), 0.0F);
    for (std::size_t at = 0; at < values.size(); ++at) {
      if (out_.trained[at] != 0) kept[at] = values[at];
    }
    return kept;
  }

  void align() {
    out_.trained = rolled_left(rows_, input_.trained);
    const BehaviourLogprobs behaviour = BehaviourLogprobs::capture(rows_, input_.behaviour, input_.trained);
    out_.behaviour.assign(behaviour.view().begin(), behaviour.view().end());
    out_.old = takes_proximal() ? kept(*input_.proximal) : out_.behaviour;
    if (!input_.turn_ids) return;
    turn_ids_ = rolled_left(rows_, *input_.turn_ids);
    for (std::size_t row = 0; row < rows_.size(); ++row) turn_ids_[rows_.end(row) - 1] = kNoTurn;
  }

  void set_kl() {
    const std::vector<float> nothing(rows_.elements(), 0.0F);
    const std::vector<float> reference = input_.reference ? kept(*input_.reference) : nothing;
    out_.kl_rewards = kl_estimate(config_.kl_estimator, true, out_.old, reference);
    const auto factor = static_cast<float>(-config_.kl_ctl);
    for (std::size_t at = 0; at < out_.kl_rewards.size(); ++at) {
      out_.kl_rewards[at] = out_.trained[at] != 0 ? factor * out_.kl_rewards[at] : 0.0F;
    }
  }

  void place_outcomes() {
    outcome_.assign(rows_.elements(), 0.0F);
    out_.total_rewards = out_.kl_rewards;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const std::size_t length = count(rows_.of(input_.attention, row));
      const bool fills = length == rows_.length(row);
      const bool is_cut_off = config_.no_eos == NoEos::kWidth ? fills : (*input_.is_cut_off)[row] != 0;
      out_.is_cut_off.push_back(is_cut_off ? 1 : 0);
      ends_.push_back(rows_.begin(row) + (length == 0 ? rows_.length(row) : length) - 1);
      out_.kl_rewards[ends_.back()] = 0;
      out_.total_rewards[ends_.back()] = 0;
      const std::size_t place = rows_.begin(row) + (length < 2 ? 0 : length - 2);
      outcome_[place] = is_cut_off && config_.mask_no_eos_with_zero ? 0.0F : out_.rewards[row];
      out_.total_rewards[place] += outcome_[place];
    }
  }

  // γ λ of each row.
  [[nodiscard]] Result<std::vector<float>> decay() const {
    if (config_.lambda.kind == LambdaKind::kConstant) {
      const auto constant = static_cast<float>(config_.lambda.value);
      AREAL_TRY(check_finite(std::span<const float>(&constant, 1)));
      return decays(config_.discount, config_.lambda.value, rows_.size());
    }
    const auto steps = time_steps(config_.time_step, rows_, out_.trained, turn_ids_.empty() ? nullptr : &turn_ids_);
    if (!steps) return steps.error();
    const auto lambda = lambdas(config_.lambda, steps->lengths());
    if (!lambda) return lambda.error();
    AREAL_TRY(check_finite(*lambda));
    return decays(config_.discount, *lambda);
  }

  Status estimate() {
    const auto decay = this->decay();
    if (!decay) return decay.error();
    const std::vector<float> nothing(rows_.elements(), 0.0F);
    const std::span<const float> values = input_.values ? *input_.values : std::span<const float>(nothing);
    std::vector<float> bootstrap(rows_.size(), 0.0F);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (out_.is_cut_off[row] != 0) bootstrap[row] = values[ends_[row]];
    }
    const bool by_turn = config_.time_step == TimeStep::kTurn;
    const GaeInput gae{rows_,  by_turn ? outcome_ : out_.total_rewards, values, out_.trained, bootstrap,
                       *decay, static_cast<float>(config_.discount)};
    out_.advantages.resize(rows_.elements());
    out_.returns.resize(rows_.elements());
    if (!by_turn) {
      gae_by_token(gae, {out_.advantages, out_.returns});
      return Unit{};
    }
    AREAL_TRY(gae_by_turn(gae, turn_ids_, {out_.advantages, out_.returns}));
    for (std::size_t at = 0; at < out_.advantages.size(); ++at) out_.advantages[at] += out_.kl_rewards[at];
    return Unit{};
  }

  const AdvantageConfig& config_;
  const AdvantageInput& input_;
  const Rows& rows_;
  Advantages out_;
  std::vector<float> outcome_;
  std::vector<std::int32_t> turn_ids_;
  std::vector<std::size_t> ends_;  // Last attended element of each row.
};

}  // namespace

Result<Advantages> prepare_advantages(const AdvantageConfig& config, const AdvantageInput& input) {
  return Preparation(config, input).run();
}

}  // namespace areal::algo
