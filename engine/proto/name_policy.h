// How a training name becomes an engine name; chosen by the caller of the plan builder.
//
// Policies are pure: no state that changes, equal answers for equal questions. They must outlive the call only.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace areal::proto {

class NamePolicy {
 public:
  virtual ~NamePolicy() = default;
  // The engine's name for `training_name`. The text lives as long as the argument and the policy.
  [[nodiscard]] virtual std::string_view engine_name(std::string_view training_name) const = 0;
  // Whether a name of one side that the other does not know refuses the whole plan. A policy that answers no leaves
  // such names out.
  [[nodiscard]] virtual bool refuses_unmatched() const { return true; }
};

// Equal names, but for a list of renames.
class RenamePolicy final : public NamePolicy {
 public:
  struct Rename {
    std::string from;
    std::string to;
  };

  RenamePolicy() = default;
  explicit RenamePolicy(std::vector<Rename> renames) : renames_(std::move(renames)) {
    std::ranges::stable_sort(renames_, {}, &Rename::from);
  }

  [[nodiscard]] std::string_view engine_name(std::string_view training_name) const override {
    const auto place = std::ranges::lower_bound(renames_, training_name, {}, &Rename::from);
    return place != renames_.end() && place->from == training_name ? std::string_view(place->to) : training_name;
  }

 private:
  std::vector<Rename> renames_;  // Sorted by `from`.
};

}  // namespace areal::proto
