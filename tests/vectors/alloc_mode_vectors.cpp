// Vectors of backend strings, allocation modes and parallel sizes.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/base/fields.h"
#include "engine/config/layout.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

using namespace config;

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json strategy_json(const ParallelStrategy& strategy) {
  return {
      {"dp", strategy.dp},       {"tp", strategy.tp},   {"pp", strategy.pp},     {"cp", strategy.cp},
      {"ep", strategy.ep},       {"etp", strategy.etp}, {"edp", strategy.edp()}, {"world_size", strategy.world_size()},
      {"str", to_text(strategy)}};
}

Json allocation_json(const ModelAllocation& allocation) {
  return {{"backend", areal::to_text(allocation.backend)},
          {"name", text_or_null(allocation.name)},
          {"parallel", strategy_json(allocation.parallel)},
          {"scheduling", {{"type", areal::to_text(allocation.placement)}, {"target", text_or_null(allocation.target)}}},
          {"world_size", allocation.world_size()},
          {"str", to_text(allocation)}};
}

// The number after `word`, if the text has one.
std::optional<std::size_t> number_after(const std::string& text, std::string_view word) {
  const std::size_t place = text.find(word);
  if (place == std::string::npos) return std::nullopt;
  std::size_t number = 0;
  const char* first = text.data() + place + word.size();
  if (std::from_chars(first, text.data() + text.size(), number).ec != std::errc()) return std::nullopt;
  return number;
}

// The reference's own checks are compared word by word; a grammar's message by its place in the text: we name the start
// of a word where the grammar names its first letter that does not fit.
Outcome check_error(const Json& vector, const std::string& text, const std::string& detail) {
  const std::string wanted = vector.at("error").at("message");
  if (!wanted.starts_with("Parsing error:")) return expect_equal(wanted, detail);
  if (wanted.find("Unexpected end-of-input") != std::string::npos) {
    return detail.find("unexpected end") != std::string::npos ? passed() : expect_equal(wanted, detail);
  }
  if (wanted.find("Error trying to process rule") != std::string::npos) {
    return detail.find("cannot divide world size") != std::string::npos ? passed() : expect_equal(wanted, detail);
  }
  const std::optional<std::size_t> theirs = number_after(wanted, "col ");
  const std::optional<std::size_t> ours = number_after(detail, "column ");
  if (!theirs || !ours || *ours > *theirs) return expect_equal(wanted, detail);
  const bool one_word =
      std::ranges::all_of(text.substr(*ours - 1, *theirs - *ours), [](char c) { return c >= 'a' && c <= 'z'; });
  return one_word ? passed() : expect_equal(wanted, detail);
}

template <class T, class ToJson>
Outcome compare(const Json& vector, const std::string& text, const Result<T>& result, ToJson to_json) {
  if (!result) {
    if (!vector.contains("error")) return failed("refused: " + result.error().detail);
    return check_error(vector, text, result.error().detail);
  }
  if (vector.contains("error")) return failed("accepted, but wanted " + vector.at("error").dump());
  return expect_equal(vector.at("outputs"), to_json(*result));
}

Outcome check_component(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const std::string text = inputs.at("spec");
  return compare(vector, text, parse_allocation(text, inputs.value("name", "")), allocation_json);
}

template <class T, class ToJson>
Json value_or_error(const Result<T>& result, ToJson to_json) {
  if (!result) return {{"error", "AttributeError"}, {"message", result.error().detail}};
  return to_json(*result);
}

Json mode_json(const AllocationMode& mode) {
  const auto strategy = [](const ModelAllocation* one) {
    return one == nullptr ? Json() : strategy_json(one->parallel);
  };
  const auto backend = [](const ModelAllocation* one) {
    return one == nullptr ? Json() : Json(areal::to_text(one->backend));
  };
  Json allocations = Json::array();
  for (const ModelAllocation& allocation : mode.allocations) allocations.push_back(allocation_json(allocation));
  return {{"allocations", allocations},
          {"world_size", mode.world_size()},
          {"type_", value_or_error(mode.type(), [](AllocationType type) { return Json(areal::to_text(type)); })},
          {"gen", value_or_error(mode.generation(), strategy)},
          {"train", value_or_error(mode.training(), strategy)},
          {"gen_backend", value_or_error(mode.generation("gen_backend"), backend)},
          {"train_backend", value_or_error(mode.training("train_backend"), backend)},
          {"gen_instance_size", value_or_error(mode.generation_instance_size(), [](auto size) { return Json(size); })}};
}

Outcome check_mode(const Json& vector) {
  const std::string text = vector.at("inputs").at("allocation_mode");
  return compare(vector, text, parse_allocation_mode(text), mode_json);
}

ParallelStrategy strategy_of(const Json& inputs) {
  return {.dp = inputs.value("data_parallel_size", 1U),
          .tp = inputs.value("tensor_parallel_size", 1U),
          .pp = inputs.value("pipeline_parallel_size", 1U),
          .cp = inputs.value("context_parallel_size", 1U),
          .ep = inputs.value("expert_parallel_size", 1U),
          .etp = inputs.value("expert_tensor_parallel_size", 1U)};
}

Outcome check_sizes(const Json& vector) {
  const ParallelStrategy strategy = strategy_of(vector.at("inputs"));
  return compare(vector, "", check_strategy(strategy), [&](Unit) { return strategy_json(strategy); });
}

Outcome check_megatron_sizes(const Json& vector) {
  const ParallelStrategy strategy = strategy_of(vector.at("inputs"));
  const std::uint32_t stages = vector.at("inputs").value("virtual_pipeline_parallel_size", 1U);
  return compare(vector, "", check_virtual_stages(strategy, stages), [&](std::uint32_t held) {
    Json json = strategy_json(strategy);
    json["vpp"] = held;
    return json;
  });
}

}  // namespace

void add_alloc_mode(std::vector<Checker>& registry) {
  registry.push_back({"alloc_mode", "ModelAllocation.from_str", check_component});
  registry.push_back({"alloc_mode", "_AllocationMode.from_str", check_mode});
  registry.push_back({"alloc_mode", "ParallelStrategy", check_sizes});
  registry.push_back({"alloc_mode", "MegatronParallelStrategy", check_megatron_sizes});
}

}  // namespace areal::vectors
