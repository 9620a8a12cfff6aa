// What vector_test knows to check: one entry per topic and function, one file per topic.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace areal::vectors {

using Json = nlohmann::json;

enum class Verdict : std::uint8_t { kPassed, kFailed, kSkipped };

struct Outcome {
  Verdict verdict = Verdict::kPassed;
  std::string detail;
};

inline Outcome passed() { return {}; }
inline Outcome failed(std::string detail) { return {Verdict::kFailed, std::move(detail)}; }
inline Outcome skipped(std::string detail) { return {Verdict::kSkipped, std::move(detail)}; }

// Equal values pass; else both are printed, cut to a readable length.
Outcome expect_equal(const Json& wanted, const Json& got);

// `vector` is one case: inputs, and outputs or error (spec examples: expected).
using Check = Outcome (*)(const Json& vector);

struct Checker {
  std::string_view topic;
  std::string_view function;
  Check check;
};

void add_alloc_mode(std::vector<Checker>& registry);
void add_transfer_plan(std::vector<Checker>& registry);
void add_sharding(std::vector<Checker>& registry);
void add_staleness(std::vector<Checker>& registry);
void add_config_gates(std::vector<Checker>& registry);
void add_spec_examples(std::vector<Checker>& registry);
void add_adamw_steps(std::vector<Checker>& registry);
void add_bf16_boundary(std::vector<Checker>& registry);
void add_adamw_boundary(std::vector<Checker>& registry);
void add_tensor_fingerprint(std::vector<Checker>& registry);
void add_dte_config(std::vector<Checker>& registry);
void add_dte_codec(std::vector<Checker>& registry);
void add_kl_estimator(std::vector<Checker>& registry);
void add_mopd(std::vector<Checker>& registry);
void add_json(std::vector<Checker>& registry);
void add_lr_schedule(std::vector<Checker>& registry);
void add_training(std::vector<Checker>& registry);
void add_tracker(std::vector<Checker>& registry);
void add_token_counts(std::vector<Checker>& registry);
void add_rollout(std::vector<Checker>& registry);
void add_lm_head(std::vector<Checker>& registry);
void add_lockstep(std::vector<Checker>& registry);
void add_gae(std::vector<Checker>& registry);
void add_gae_lambda(std::vector<Checker>& registry);
void add_overlong_penalty(std::vector<Checker>& registry);
void add_packing(std::vector<Checker>& registry);
void add_prompt_length(std::vector<Checker>& registry);
void add_normalization(std::vector<Checker>& registry);
void add_advantages(std::vector<Checker>& registry);
void add_prompt_groups(std::vector<Checker>& registry);
void add_rollout_rules(std::vector<Checker>& registry);
void add_policy_loss(std::vector<Checker>& registry);
void add_critic_loss(std::vector<Checker>& registry);
void add_rejection(std::vector<Checker>& registry);
void add_dpo(std::vector<Checker>& registry);
void add_m2po(std::vector<Checker>& registry);
void add_proximal(std::vector<Checker>& registry);
void add_grpo_loss(std::vector<Checker>& registry);

}  // namespace areal::vectors
