// Environment variables as values: what a process is started with, changed and looked up without touching the machine.
//
// Look-ups follow the reference's helpers (areal/utils/environ.py): a blank value counts as unset and the next name is
// tried. Plain values, safe to share between threads.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace areal::config {

struct Variable {
  std::string name;
  std::string value;
  bool operator==(const Variable&) const = default;
};

// Names are unique and stay in the order in which they were first set.
class Environment {
 public:
  // Null if it is not set. Good until the next set().
  [[nodiscard]] const std::string* find(std::string_view name) const;
  void set(std::string_view name, std::string_view value);
  [[nodiscard]] std::span<const Variable> variables() const { return variables_; }
  bool operator==(const Environment&) const = default;

 private:
  std::vector<Variable> variables_;
};

struct VariableNames {
  std::string_view name;
  std::span<const std::string_view> fallbacks = {};  // Tried in order when `name` is unset.
  bool blank_is_set = false;                         // A value of nothing but blanks is a value too.
};

// As it is written, blanks included; nothing if every name is unset.
std::optional<std::string_view> find_variable(const Environment& environment, const VariableNames& names);

// Whether `value` is one of `truthy`, whatever its case. Everything else is false.
bool is_truthy(std::string_view value, std::span<const std::string_view> truthy);

// Without blanks at both ends.
std::string_view trimmed(std::string_view text);

// ASCII only.
std::string lower_case(std::string_view text);

}  // namespace areal::config
