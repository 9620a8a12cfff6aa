// Merges two sorted lists of names.
#include "engine/proto/key_contract.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace areal::proto {
namespace {

constexpr std::string_view kHeadName = "lm_head.weight";
constexpr std::string_view kEmbeddingName = "model.embed_tokens.weight";
// So many names of each kind are printed; the counts say the rest.
constexpr std::size_t kPrintedNames = 16;

struct NamedParameter {
  std::string_view name;
  std::uint32_t index = 0;
};

template <class NameOf>
std::vector<NamedParameter> sorted_names(std::span<const std::string_view> names, NameOf name_of) {
  std::vector<NamedParameter> list;
  list.reserve(names.size());
  for (std::uint32_t i = 0; i < names.size(); ++i) list.push_back({name_of(names[i]), i});
  if (!std::ranges::is_sorted(list, {}, &NamedParameter::name)) {
    std::ranges::stable_sort(list, {}, &NamedParameter::name);
  }
  return list;
}

bool contains(const std::vector<NamedParameter>& list, std::string_view name) {
  const auto place = std::ranges::lower_bound(list, name, {}, &NamedParameter::name);
  return place != list.end() && place->name == name;
}

bool is_tied_alias(std::string_view name, const std::vector<NamedParameter>& train) {
  if (name == kHeadName) return contains(train, kEmbeddingName);
  return name == kEmbeddingName && contains(train, kHeadName);
}

std::string quoted(const std::vector<std::string_view>& names) {
  std::string text = "[";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == kPrintedNames) {
      text += ", ...";
      break;
    }
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
  }
  return text + "]";
}

// Whether a name appears twice.
bool has_repeat(const std::vector<NamedParameter>& list) {
  return std::ranges::adjacent_find(list, {}, &NamedParameter::name) != list.end();
}

}  // namespace

Result<std::vector<MatchedName>> match_names(std::span<const std::string_view> train,
                                             std::span<const std::string_view> infer, const NamePolicy& policy,
                                             bool strict) {
  const auto ours = sorted_names(train, [&policy](std::string_view name) { return policy.engine_name(name); });
  const auto theirs = sorted_names(infer, [](std::string_view name) { return name; });
  if (has_repeat(ours) || has_repeat(theirs)) return Error{Errc::kInvalid, "a parameter name appears twice"};
  std::vector<MatchedName> matched;
  matched.reserve(ours.size());
  std::vector<std::string_view> missing;
  std::vector<std::string_view> extra;
  std::vector<std::string_view> unsupported;
  const auto note_extra = [&](std::string_view name) {
    extra.push_back(name);
    if (policy.refuses_unmatched() && !is_tied_alias(name, ours)) unsupported.push_back(name);
  };
  auto theirs_at = theirs.begin();
  for (const NamedParameter& our : ours) {
    while (theirs_at != theirs.end() && theirs_at->name < our.name) note_extra((theirs_at++)->name);
    if (theirs_at != theirs.end() && theirs_at->name == our.name) {
      matched.push_back({our.index, (theirs_at++)->index});
    } else {
      missing.push_back(our.name);
    }
  }
  while (theirs_at != theirs.end()) note_extra((theirs_at++)->name);

  const bool refused = (!missing.empty() && (policy.refuses_unmatched() || strict)) || !unsupported.empty() ||
                       (strict && !extra.empty());
  if (!refused) return matched;
  return Error{Errc::kInvalid,
               fmt::format("Train/infer key mismatch for transfer plan: train={} infer={} missing_on_infer={} "
                           "extra_on_infer={} unsupported_extra_on_infer={} strict={}",
                           ours.size(), theirs.size(), quoted(missing), quoted(extra), quoted(unsupported),
                           strict ? "True" : "False")};
}

}  // namespace areal::proto
