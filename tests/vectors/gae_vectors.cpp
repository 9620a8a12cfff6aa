// Vectors of advantages by token and by turn, in both formats.
//
// The reference masks by multiplication, so that a NaN at a masked element spreads. Where an expected value is such a
// NaN the reference's form must yield it, and ours must yield what it yields with zeros at the masked elements.
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/algo/gae.h"
#include "engine/algo/time_steps.h"
#include "tests/vectors/examples.h"

namespace areal::vectors {
namespace {

using algo::GaeInput;
using algo::GaeOutput;
using algo::Rows;

struct Case {
  explicit Case(const Json& inputs)
      : rows(Rows::padded(sides_of(inputs.at("rewards")).rows, sides_of(inputs.at("rewards")).width)),
        rewards(floats_of(flat(inputs.at("rewards")))),
        values(floats_of(flat(inputs.at("values")))),
        trained(mask_of(flat(inputs.at("loss_mask")))),
        cut_off(mask_of(inputs.at("seq_no_eos_mask"))),
        discount(number_of(inputs.at("discount"))) {
    const Json& lambda = inputs.at("gae_lambda");
    decay = lambda.is_structured() ? algo::decays(discount, floats_of(lambda))
                                   : algo::decays(discount, number_of(lambda), rows.size());
    advantages.resize(rows.elements());
    returns.resize(rows.elements());
  }

  // An error, or the result in `advantages` and `returns`. No ids: by token.
  Status run(const std::vector<std::int32_t>* turn_ids) {
    auto ends = algo::bootstraps(rows, values, cut_off);
    if (!ends) return std::move(ends).error();
    const GaeInput input{rows, rewards, values, trained, *ends, decay, static_cast<float>(discount)};
    const GaeOutput output{advantages, returns};
    if (turn_ids != nullptr) return algo::gae_by_turn(input, *turn_ids, output);
    algo::gae_by_token(input, output);
    return Unit{};
  }

  // Whether there was anything to hide.
  bool hide_masked() {
    bool hidden = false;
    for (std::size_t at = 0; at < rewards.size(); ++at) {
      if (trained[at] != 0) continue;
      hidden = hidden || !std::isfinite(rewards[at]);
      if (!std::isfinite(rewards[at])) rewards[at] = 0;
    }
    return hidden;
  }

  Rows rows;
  std::vector<float> rewards, values;
  std::vector<std::uint8_t> trained, cut_off;
  double discount;
  std::vector<float> decay;
  std::vector<float> advantages, returns;
};

// Masking by multiplication.
void run_leaking(Case& made, const std::vector<std::int32_t>* turn_ids) {
  for (std::size_t row = 0; row < made.rows.size(); ++row) {
    const std::size_t begin = made.rows.begin(row);
    const std::size_t end = made.rows.end(row);
    const float after = made.values[end - 1] * static_cast<float>(made.cut_off[row]);
    const auto discount = static_cast<float>(made.discount);
    float next_value = after;
    float last = 0;
    if (turn_ids == nullptr) {
      made.advantages[end - 1] = 0;
      for (std::size_t at = end - 1; at-- > begin;) {
        const auto mask = static_cast<float>(made.trained[at]);
        const float fresh = made.rewards[at] + discount * next_value - made.values[at] + made.decay[row] * last;
        next_value = next_value * (1 - mask) + made.values[at] * mask;
        last = last * (1 - mask) + fresh * mask;
        made.advantages[at] = last;
      }
    } else {
      const std::size_t width = end - begin;
      std::vector<float> sum(width, 0), first_value(width, 0), advantage(width, 0);
      std::vector<bool> exists(width, false);
      const auto slot = [&](std::size_t at) {
        return std::min<std::size_t>(width - 1, static_cast<std::size_t>(std::max(0, (*turn_ids)[at])));
      };
      for (std::size_t at = begin; at < end; ++at) {
        const auto mask = static_cast<float>(made.trained[at]);
        sum[slot(at)] += made.rewards[at] * mask;
        if (made.trained[at] != 0 && !exists[slot(at)])
          first_value[slot(at)] = made.values[at], exists[slot(at)] = true;
      }
      for (std::size_t turn = width; turn-- > 0;) {
        const auto mask = static_cast<float>(exists[turn]);
        const float fresh = sum[turn] + discount * next_value - first_value[turn] + made.decay[row] * last;
        next_value = next_value * (1 - mask) + first_value[turn] * mask;
        last = last * (1 - mask) + fresh * mask;
        advantage[turn] = fresh * mask;
      }
      for (std::size_t at = begin; at < end; ++at) {
        made.advantages[at] = advantage[slot(at)] * static_cast<float>(made.trained[at]);
      }
    }
  }
}

std::string advantages_miss(const Json& wanted, const Case& got, Tolerance tolerance) {
  return values_miss("advantages", flat(wanted.at("advantages")), got.advantages, tolerance);
}

Outcome check_leak(const Json& vector, const std::vector<std::int32_t>* turn_ids) {
  Case leaking(vector.at("inputs"));
  run_leaking(leaking, turn_ids);
  if (const auto miss = advantages_miss(vector.at("outputs"), leaking, kGaeRecursion); !miss.empty()) {
    return failed("the form that leaks: " + miss);
  }
  Case ours(vector.at("inputs"));
  if (const auto status = ours.run(turn_ids); !status) return failed(status.error().detail);
  Case hidden(vector.at("inputs"));
  hidden.hide_masked();
  if (const auto status = hidden.run(turn_ids); !status) return failed(status.error().detail);
  for (const float value : ours.advantages) {
    if (!std::isfinite(value)) return failed("a value at a masked element leaks");
  }
  return expect_equal(Json(hidden.advantages), Json(ours.advantages));
}

Outcome check_case(const Json& vector, const Json& wanted, Tolerance tolerance,
                   const std::vector<std::int32_t>* turn_ids) {
  Case made(vector.at("inputs"));
  const Status status = made.run(turn_ids);
  if (!status) return failed(status.error().detail);
  return first_miss({advantages_miss(wanted, made, tolerance),
                     values_miss("returns", flat(wanted.at("returns")), made.returns, tolerance)});
}

Outcome check_gae(const Json& vector, const std::vector<std::int32_t>* turn_ids) {
  if (vector.contains("error")) return expect_equal(false, Case(vector.at("inputs")).run(turn_ids).has_value());
  if (Case(vector.at("inputs")).hide_masked()) return check_leak(vector, turn_ids);
  return check_case(vector, vector.at("outputs"), kGaeRecursion, turn_ids);
}

Outcome check_token(const Json& vector) { return check_gae(vector, nullptr); }

Outcome check_turn(const Json& vector) {
  const Json& ids = vector.at("inputs").at("turn_ids");
  if (ids.at("dtype").get<std::string>().starts_with("float")) return skipped("turn ids are whole numbers by type");
  const std::vector<std::int32_t> turn_ids = int32_of(ids);
  return check_gae(vector, &turn_ids);
}

Outcome check_context(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const Sides sides = sides_of(inputs.at("loss_mask"));
  const Rows rows = Rows::padded(sides.rows, sides.width);
  std::vector<std::int32_t> ids;
  const bool has_ids = !inputs.at("turn_ids").is_null();
  if (has_ids) ids = int32_of(inputs.at("turn_ids"));
  const auto unit = algo::time_step_from(inputs.at("gae_timestep_unit").get<std::string>());
  if (!unit) return failed("unknown unit");
  const auto trained = mask_of(inputs.at("loss_mask"));
  const auto steps = algo::time_steps(*unit, rows, trained, has_ids ? &ids : nullptr);
  if (vector.contains("error")) return expect_equal(false, steps.has_value());
  if (!steps) return failed(steps.error().detail);
  return expect_equal({{"effective_token_lengths", integers_of(vector.at("outputs").at("effective_token_lengths"))},
                       {"turn_counts", integers_of(vector.at("outputs").at("turn_counts"))},
                       {"timestep_lengths", integers_of(vector.at("outputs").at("timestep_lengths"))}},
                      {{"effective_token_lengths", steps->tokens},
                       {"turn_counts", steps->turns},
                       {"timestep_lengths", steps->lengths()}});
}

Outcome check_example_token(const Json& vector) {
  return check_case(vector, vector.at("expected"), tolerance_of(vector), nullptr);
}

Outcome check_example_turn(const Json& vector) {
  const std::vector<std::int32_t> turn_ids = int32_of(flat(vector.at("inputs").at("turn_ids")));
  return check_case(vector, vector.at("expected"), tolerance_of(vector), &turn_ids);
}

}  // namespace

void add_gae(std::vector<Checker>& registry) {
  registry.push_back({"gae", "_compute_token_level_gae", check_token});
  registry.push_back({"gae", "_compute_turn_level_gae", check_turn});
  registry.push_back({"gae", "_build_gae_lambda_context", check_context});
  registry.push_back({"spec_examples", "gae.token", check_example_token});
  registry.push_back({"spec_examples", "gae.turn", check_example_turn});
}

}  // namespace areal::vectors
