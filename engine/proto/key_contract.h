// Which names both sides must have before a transfer plan can be made.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/proto/name_policy.h"
#include "engine/proto/shard_meta.h"

namespace areal::proto {

// One parameter that both sides have: indices into the parameters of the two sets.
struct MatchedName {
  std::uint32_t train = 0;
  std::uint32_t infer = 0;
};

// The names of all parameters of a MetaSet or a GridSet, in their order. Views into `side`.
template <class Side>
std::vector<std::string_view> names_of(const Side& side) {
  std::vector<std::string_view> names;
  names.reserve(side.parameters.size());
  for (const auto& parameter : side.parameters) names.emplace_back((*side.names)[parameter.name]);
  return names;
}

// The common names in ascending order of the engine's name. Every training name must exist on the inference side. A
// name that only the inference side has is allowed if it is the tied alias (lm_head.weight and
// model.embed_tokens.weight name one tensor, and the training side has the other); `strict` allows no difference. Names
// of one side are unique.
Result<std::vector<MatchedName>> match_names(std::span<const std::string_view> train,
                                             std::span<const std::string_view> infer, const NamePolicy& policy,
                                             bool strict);

}  // namespace areal::proto
