#include "tests/vectors/adamw_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "engine/delta/bf16.h"
#include "engine/delta/change_mask.h"
#include "engine/delta/inversion.h"
#include "engine/delta/shard/shard_detect.h"
#include "tests/vectors/hex_floats.h"

namespace areal::vectors {
namespace {

constexpr std::int64_t kTolerance = 2;

// The place of a value among all fp32 values in order; both zeros have one place.
std::int64_t place(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::int64_t magnitude = bits & 0x7FFFFFFF;
  return (bits >> 31) != 0 ? -magnitude : magnitude;
}

// The first element that is too far from what is wanted, or an empty text.
std::string near_miss(std::string_view field, const std::vector<float>& wanted, const std::vector<float>& got,
                      std::int64_t tolerance) {
  if (wanted.size() != got.size()) return fmt::format("{} has {} elements, not {}", field, got.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (std::isnan(wanted[i]) && std::isnan(got[i])) continue;
    if (std::abs(place(wanted[i]) - place(got[i])) <= tolerance) continue;
    return fmt::format("{}[{}]: wanted {:08x}, got {:08x}", field, i, std::bit_cast<std::uint32_t>(wanted[i]),
                       std::bit_cast<std::uint32_t>(got[i]));
  }
  return {};
}

Json hex_of_bf16(const std::vector<float>& values) {
  Json words = Json::array();
  for (const float value : values) words.push_back(fmt::format("{:04x}", delta::to_bf16(value)));
  return words;
}

// What the first of `misses` that is not empty says.
std::string first_of(std::initializer_list<std::string> misses) {
  const auto found = std::ranges::find_if(misses, [](const std::string& miss) { return !miss.empty(); });
  return found == misses.end() ? std::string{} : *found;
}

// Everything that follows from inverted weights.
struct Masks {
  std::vector<float> reconstructed;
  Json true_changed = Json::array();
  Json inv_changed = Json::array();
  Json boundary = Json::array();
  Json final_mask = Json::array();
  int missed_by_inversion = 0;
  int missed_by_mask = 0;
};

Masks masks_of(const std::vector<float>& before, const std::vector<float>& after, const std::vector<float>& inverted) {
  Masks masks;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const std::uint16_t current = delta::to_bf16(after[i]);
    const float old = delta::reconstruct(current, delta::correction_of(inverted[i], current));
    const bool truly = delta::to_bf16(before[i]) != current;
    const bool inverts = delta::to_bf16(old) != current;
    const bool carried = delta::bf16_changed(old, current, delta::kReferenceMargin);
    masks.reconstructed.push_back(old);
    masks.true_changed.push_back(truly ? 1 : 0);
    masks.inv_changed.push_back(inverts ? 1 : 0);
    masks.boundary.push_back(delta::near_rounding_boundary(old, current, delta::kReferenceMargin) ? 1 : 0);
    masks.final_mask.push_back(carried ? 1 : 0);
    masks.missed_by_inversion += truly && !inverts ? 1 : 0;
    masks.missed_by_mask += truly && !carried ? 1 : 0;
  }
  return masks;
}

// What an optimizer shard finds alone, without the sum over its copies.
Json shard_mask(const delta::AdamWSettings& settings, const Json& in) {
  const std::vector<float> weights = floats_of_hex(in.at("p_now"));
  const std::vector<float> exp_avg = floats_of_hex(in.at("exp_avg"));
  const std::vector<float> exp_avg_sq = floats_of_hex(in.at("exp_avg_sq"));
  std::vector<std::uint32_t> visible;
  for (const float weight : weights) visible.push_back(delta::to_bf16(weight));
  const delta::ShardRule rule = delta::margin_rule(delta::inversion_scalars(settings, in.at("step")));
  Json mask = Json::array();
  for (std::size_t i = 0; i < weights.size(); ++i) mask.push_back(0);
  for (const std::uint64_t i : delta::changed_elements({weights, exp_avg, exp_avg_sq, visible}, rule)) mask[i] = 1;
  return mask;
}

using Invert = float (*)(const delta::InversionScalars&, float, float, float);

std::vector<float> inverted_with(Invert invert, const delta::AdamWSettings& settings, const Json& in) {
  const delta::InversionScalars scalars = delta::inversion_scalars(settings, in.at("step"));
  const std::vector<float> weights = floats_of_hex(in.at("p_now"));
  const std::vector<float> exp_avg = floats_of_hex(in.at("exp_avg"));
  const std::vector<float> exp_avg_sq = floats_of_hex(in.at("exp_avg_sq"));
  std::vector<float> result;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    result.push_back(invert(scalars, weights[i], exp_avg[i], exp_avg_sq[i]));
  }
  return result;
}

// With the rate that the schedule moved on to: wrong, and wrong in this way.
std::string late_rate_miss(const Json& in, const Json& out) {
  if (!out.contains("inverted_with_lr_after")) return {};
  delta::AdamWSettings settings = settings_of(in);
  settings.learning_rate = in.at("lr_after_scheduler");
  return bits_miss("inverted_with_lr_after", floats_of_hex(out.at("inverted_with_lr_after")),
                   inverted_with(delta::invert_adamw, settings, in));
}

}  // namespace

delta::AdamWSettings settings_of(const Json& inputs) {
  return {.learning_rate = inputs.at("lr_used"),
          .weight_decay = inputs.at("weight_decay"),
          .beta1 = inputs.at("beta1"),
          .beta2 = inputs.at("beta2"),
          .epsilon = inputs.at("eps")};
}

std::string forward_miss(const Json& vector) {
  const Json& in = vector.at("inputs");
  std::vector<float> weights = floats_of_hex(in.at("p_prev"));
  std::vector<float> exp_avg = floats_of_hex(in.at("exp_avg_prev"));
  std::vector<float> exp_avg_sq = floats_of_hex(in.at("exp_avg_sq_prev"));
  const std::vector<float> gradients = floats_of_hex(in.at("grad"));
  const std::vector<float> before = weights;
  delta::adamw_step(delta::adamw_scalars(settings_of(in), in.at("step")), {weights, exp_avg, exp_avg_sq, gradients});
  return first_of({near_miss("exp_avg", floats_of_hex(in.at("exp_avg")), exp_avg, 0),
                   near_miss("exp_avg_sq", floats_of_hex(in.at("exp_avg_sq")), exp_avg_sq, kTolerance),
                   near_miss("p_now", floats_of_hex(in.at("p_now")), weights, kTolerance)});
}

std::string inversion_miss(const Json& vector) {
  const Json& in = vector.at("inputs");
  const Json& out = vector.at("outputs");
  const delta::AdamWSettings settings = settings_of(in);
  const std::vector<float> inverted = inverted_with(delta::invert_adamw, settings, in);
  const std::string miss = bits_miss("inverted", floats_of_hex(out.at("inverted")), inverted);
  if (!miss.empty() || !out.contains("reconstructed")) return miss;
  const std::vector<float> before = floats_of_hex(in.at("p_prev"));
  const std::vector<float> after = floats_of_hex(in.at("p_now"));
  const Masks masks = masks_of(before, after, inverted);
  return first_of(
      {bits_miss("inverted_recip", floats_of_hex(out.at("inverted_recip")),
                 inverted_with(delta::invert_adamw_by_reciprocals, settings, in)),
       bits_miss("reconstructed", floats_of_hex(out.at("reconstructed")), masks.reconstructed),
       list_miss("inv_bf16", out.at("inv_bf16"), hex_of_bf16(masks.reconstructed)),
       list_miss("true_prev_bf16", out.at("true_prev_bf16"), hex_of_bf16(before)),
       list_miss("cur_bf16", out.at("cur_bf16"), hex_of_bf16(after)),
       list_miss("true_changed", out.at("true_changed"), masks.true_changed),
       list_miss("inv_changed", out.at("inv_changed"), masks.inv_changed),
       list_miss("boundary", out.at("boundary"), masks.boundary),
       list_miss("final_mask", out.at("final_mask"), masks.final_mask),
       list_miss("mask of a shard", out.at("final_mask"), shard_mask(settings, in)),
       list_miss("false negatives", {out.at("n_false_negative_inversion"), out.at("n_false_negative_final")},
                 {masks.missed_by_inversion, masks.missed_by_mask}),
       late_rate_miss(in, out)});
}

}  // namespace areal::vectors
