// Names of LoRA adapters by version, which of them a server keeps, and their keys on disk.
//
// An adapter's versions are served as "<name>-v<version>"; a request carries the name of the version that it pinned. A
// server keeps max staleness + 2 of them, so that what a sample under way may name is still there. Pure functions and
// values. Source: versioned LoRA updates of AReaL; the key form of PEFT's save_pretrained().
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace areal::algo {

std::string adapter_name(std::string_view name, std::uint64_t version);

constexpr std::uint64_t adapters_kept(std::uint64_t max_staleness) { return max_staleness + 2; }

struct AdapterRequests {
  std::string load;
  std::optional<std::string> unload;
};

// For an update to `version` from disk. keep 0: nothing is ever unloaded.
AdapterRequests adapter_requests(std::string_view name, std::uint64_t version, std::uint64_t keep);

// A parameter's key as PEFT writes it: without the adapter's ".default" before ".weight" or ".bias".
std::string peft_key(std::string_view parameter);

// The names under which a server knows its one runtime adapter. A refresh adds a name and keeps the earlier ones, at
// most `keep` in all, so that a request that is under way does not fail for its name. A request of an earlier name is
// served by the newest weights: its label is then older than its weights, never newer.
class AdapterAliases {
 public:
  // REQUIRES: keep > 0.
  AdapterAliases(std::string_view name, std::uint64_t keep);
  // REQUIRES: versions rise.
  void refresh(std::uint64_t version);
  // The version whose weights serve the request; nothing if the name is unknown.
  [[nodiscard]] std::optional<std::uint64_t> serving(std::string_view adapter) const;
  [[nodiscard]] std::vector<std::string> names() const;  // Oldest first.

 private:
  std::string name_;
  std::uint64_t keep_ = 0;
  std::deque<std::uint64_t> versions_;
};

}  // namespace areal::algo
