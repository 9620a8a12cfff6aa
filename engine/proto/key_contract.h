// Which names both sides must have before a transfer plan can be made.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
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
  // Of an alias: the engines' parameter that it stands for. Ranks that hold both in one box hold them once.
  std::optional<std::uint32_t> stands_for = std::nullopt;
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

// `matched` with an entry for each alias that the engines have and whose source is matched; order as before. A name
// that is matched itself is nobody's alias: its own values are sent.
template <class Side>
std::vector<MatchedName> with_aliases(std::vector<MatchedName> matched, const Side& infer,
                                      std::span<const config::Alias> aliases) {
  const auto parameter_of = [&infer](std::uint32_t name) -> std::optional<std::uint32_t> {
    for (std::uint32_t i = 0; i < infer.parameters.size(); ++i) {
      if (infer.parameters[i].name == name) return i;
    }
    return std::nullopt;
  };
  for (const config::Alias& alias : aliases) {
    const std::optional<std::uint32_t> own = parameter_of(alias.name);
    const std::optional<std::uint32_t> source = parameter_of(alias.source);
    if (!own || !source || std::ranges::find(matched, *own, &MatchedName::infer) != matched.end()) continue;
    const auto match = std::ranges::find(matched, *source, &MatchedName::infer);
    if (match != matched.end()) matched.push_back({match->train, *own, source});
  }
  if (!aliases.empty()) {
    std::ranges::stable_sort(matched, {}, [&infer](const MatchedName& match) -> std::string_view {
      return (*infer.names)[infer.parameters[match.infer].name];
    });
  }
  return matched;
}

}  // namespace areal::proto
