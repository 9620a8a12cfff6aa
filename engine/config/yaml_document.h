// A YAML text as a tree of plain values that know their place, and the changes that a command line makes to it.
//
// Only what scenario files need: mappings, lists and scalars of one document. Anchors, aliases and tags are refused. No
// exception leaves. Plain values, safe to share between threads.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace areal::config {

// Something wrong in a file: where, at which key, and what would be right.
struct Problem {
  int line = 0;      // Counted from 1; 0 for a change that did not come from the file.
  std::string path;  // "scenario.faults[0].at".
  std::string text;
};

enum class YamlKind : std::uint8_t { kNull, kScalar, kMapping, kList };

struct YamlNode {
  YamlKind kind = YamlKind::kNull;
  int line = 0;
  bool quoted = false;    // A scalar that is a string whatever it looks like.
  std::string text = {};  // Of a scalar.
  std::string key = {};   // Under which the parent mapping holds it.
  int key_line = 0;
  std::vector<YamlNode> children = {};

  // Null if there is no such key.
  [[nodiscard]] const YamlNode* find(std::string_view name) const;
  [[nodiscard]] YamlNode* find(std::string_view name);
};

// "a list", "string '10'", "'x'", "null": a value as an error message shows it.
std::string shown(const YamlNode& node);

// The one document of `text`; syntax errors (with line and column), repeated keys and what is refused are appended to
// `problems`. Nothing if there is no tree to look at.
std::optional<YamlNode> parse_yaml(const std::string& text, std::vector<Problem>& problems);

// Sets one value: "work.updates=20", "faults[0].at=45s". The value is YAML. Missing mappings are made, and an index one
// past the end of a list appends. A change that has no place is a problem.
void apply_override(YamlNode& root, const std::string& change, std::vector<Problem>& problems);

}  // namespace areal::config
