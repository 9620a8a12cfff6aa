#include "engine/algo/lora_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/check.h"

namespace areal::algo {

std::string adapter_name(std::string_view name, std::uint64_t version) { return fmt::format("{}-v{}", name, version); }

AdapterRequests adapter_requests(std::string_view name, std::uint64_t version, std::uint64_t keep) {
  AdapterRequests requests{adapter_name(name, version), std::nullopt};
  if (keep > 0 && version >= keep) requests.unload = adapter_name(name, version - keep);
  return requests;
}

std::string peft_key(std::string_view parameter) {
  constexpr std::string_view kAdapter = ".default";
  for (const std::string_view ending : {".weight", ".bias"}) {
    if (!parameter.ends_with(ending)) continue;
    const std::string_view rest = parameter.substr(0, parameter.size() - ending.size());
    if (rest.ends_with(kAdapter)) return fmt::format("{}{}", rest.substr(0, rest.size() - kAdapter.size()), ending);
  }
  return std::string(parameter);
}

AdapterAliases::AdapterAliases(std::string_view name, std::uint64_t keep) : name_(name), keep_(keep) {
  AREAL_CHECK(keep > 0);
}

void AdapterAliases::refresh(std::uint64_t version) {
  AREAL_CHECK(versions_.empty() || version > versions_.back());
  versions_.push_back(version);
  // By version, not by count: what may still be named depends on how far versions have moved on.
  while (version - versions_.front() >= keep_) versions_.pop_front();
}

std::optional<std::uint64_t> AdapterAliases::serving(std::string_view adapter) const {
  const bool known =
      std::ranges::any_of(versions_, [&](std::uint64_t version) { return adapter_name(name_, version) == adapter; });
  return known ? std::optional(versions_.back()) : std::nullopt;
}

std::vector<std::string> AdapterAliases::names() const {
  std::vector<std::string> made;
  made.reserve(versions_.size());
  for (const std::uint64_t version : versions_) made.push_back(adapter_name(name_, version));
  return made;
}

}  // namespace areal::algo
