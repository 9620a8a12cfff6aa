// Vectors of prompt lengths and of the mask of all tokens, in both formats.
#include <nlohmann/json.hpp>
#include <string>

#include "engine/algo/prompt_length.h"
#include "tests/vectors/examples.h"

namespace areal::vectors {
namespace {

std::vector<std::int64_t> lengths_of(const Json& attention, const Json& trained) {
  const Sides sides = sides_of(attention);
  return algo::prompt_lengths(algo::Rows::padded(sides.rows, sides.width), mask_of(flat(attention)),
                              mask_of(flat(trained)));
}

Outcome check_prompt(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  return expect_equal(integers_of(vector.at("outputs").at("prompt_lens")),
                      lengths_of(inputs.at("attention_mask"), inputs.at("loss_mask")));
}

Outcome check_denominator(const Json& vector) {
  const Json& data = vector.at("inputs").at("input_data");
  const auto given = [&](const char* key) { return data.contains(key) && !data.at(key).is_null(); };
  algo::TokenShapes shapes;
  if (given("attention_mask")) shapes.attention_mask = shape_of(data.at("attention_mask"));
  if (given("cu_seqlens")) shapes.cu_seqlens = int32_of(data.at("cu_seqlens"));
  if (given("input_ids")) shapes.input_ids = shape_of(data.at("input_ids"));
  return expect_equal(vector.at("outputs").at("shape"),
                      algo::token_shape(shapes, shape_of(vector.at("inputs").at("fallback"))));
}

// The answer's tokens counted off from the attended ones: wrong once some of them are filtered out.
std::int64_t by_difference(const Json& inputs) {
  return static_cast<std::int64_t>(algo::count(mask_of(flat(inputs.at("attention_mask"))))) -
         static_cast<std::int64_t>(algo::count(mask_of(flat(inputs.at("rolled_loss_mask")))));
}

Outcome check_example(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const Json& wanted = vector.at("expected");
  const auto lengths = lengths_of(inputs.at("attention_mask"), inputs.at("rolled_loss_mask"));
  if (wanted.contains("old_formula_prompt_len")) {
    if (wanted.at("old_formula_prompt_len") == wanted.at("prompt_len"))
      return failed("the old formula is not told apart");
    const Outcome old = expect_equal(wanted.at("old_formula_prompt_len"), Json::array({by_difference(inputs)}));
    if (old.verdict != Verdict::kPassed) return old;
  }
  return expect_equal(wanted.at("prompt_len"), lengths);
}

}  // namespace

void add_prompt_length(std::vector<Checker>& registry) {
  registry.push_back({"actor_misc", "_infer_prompt_lens", check_prompt});
  registry.push_back({"actor_misc", "infer_token_denominator", check_denominator});
  registry.push_back({"spec_examples", "stats.prompt_len", check_example});
}

}  // namespace areal::vectors
