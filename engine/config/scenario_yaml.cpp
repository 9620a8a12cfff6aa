// Walks a YAML tree along the table of keys and collects every problem on the way.
#include "engine/config/scenario_yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "engine/base/text.h"
#include "engine/config/scenario_check.h"
#include "engine/config/scenario_keys.h"
#include "engine/config/scenario_values.h"

namespace areal::config {
namespace {

constexpr std::string_view kTop = "scenario";

// All paths of the table, for "did you mean" across mappings.
std::vector<std::string> all_paths() {
  Scenario scratch;
  std::vector<std::string> paths;
  for (KeyPath& known : all_keys(scratch)) paths.push_back(std::move(known.path));
  return paths;
}

std::string_view last_word(std::string_view path) {
  const std::size_t dot = path.find_last_of('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::string either(const std::vector<std::string_view>& paths) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(paths.size(), 3); ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : " or ", paths[i]);
  }
  return text;
}

// A mapping in its short form, written out.
YamlNode written_out(YamlNode value, std::string_view shorthand) {
  YamlNode mapping{.kind = YamlKind::kMapping, .line = value.line, .key = value.key, .key_line = value.key_line};
  value.key = shorthand;
  value.key_line = value.line;
  mapping.children.push_back(std::move(value));
  return mapping;
}

// Writes out every short form, so that a change can name a key inside. As deep as the table.
void write_out(YamlNode& node, const KeyGroup& group) {
  if (node.kind == YamlKind::kScalar && !group.shorthand.empty()) node = written_out(std::move(node), group.shorthand);
  if (node.kind != YamlKind::kMapping) return;
  for (YamlNode& child : node.children) {
    const auto known = std::ranges::find(group.keys, child.key, &Key::name);
    if (known == group.keys.end()) continue;
    if (const auto* mapped = std::get_if<GroupRef>(&known->value)) write_out(child, mapped->open(0));
    const auto* list = std::get_if<ListRef>(&known->value);
    if (list == nullptr || child.kind != YamlKind::kList) continue;
    for (YamlNode& item : child.children) write_out(item, list->append(0));
  }
}

// Lives for one file.
class Reader {
 public:
  explicit Reader(std::vector<Problem>& problems) : problems_(problems), paths_(all_paths()) {}

  void read_root(const YamlNode& root, Scenario& scenario) {
    if (root.kind != YamlKind::kMapping) {
      return add(root.line, "", fmt::format("expected a mapping with the key 'scenario', got {}", shown(root)));
    }
    for (const YamlNode& child : root.children) {
      if (child.key != kTop) add(child.key_line, child.key, unknown_at_root(child.key));
    }
    const YamlNode* top = root.find(kTop);
    if (top == nullptr) return add(root.line, "", "required key 'scenario' is missing");
    places_.add(std::string(kTop), top->key_line);
    read_group(*top, scenario_keys(scenario), std::string(kTop));
  }

  [[nodiscard]] const Places& places() const { return places_; }

 private:
  void add(int line, std::string path, std::string text) {
    problems_.push_back({line, std::move(path), std::move(text)});
  }

  [[nodiscard]] std::string unknown_at_root(const std::string& key) const {
    const std::string text = fmt::format("unknown key '{}' beside 'scenario'", key);
    if (std::ranges::find(paths_, key) != paths_.end()) return text + fmt::format("; did you mean 'scenario.{}'?", key);
    return text + did_you_mean(key, {kTop});
  }

  // The same key elsewhere goes before a similar one here, and that before a similar one elsewhere.
  [[nodiscard]] std::string unknown_key(const std::string& key, const KeyGroup& group, const std::string& path) const {
    const std::string where = path == kTop ? "at top level" : "in " + path.substr(kTop.size() + 1);
    const std::string text = fmt::format("unknown key '{}' {}", key, where);
    std::vector<std::string_view> same;
    std::vector<std::string_view> words;
    words.reserve(paths_.size());
    for (const std::string& known : paths_) words.push_back(last_word(known));
    std::ranges::copy_if(paths_, std::back_inserter(same),
                         [&](const std::string& known) { return last_word(known) == key; });
    if (!same.empty()) return fmt::format("{}; did you mean {}?", text, either(same));
    std::vector<std::string_view> here;
    here.reserve(group.keys.size());
    for (const Key& known : group.keys) here.push_back(known.name);
    const std::string hint = did_you_mean(key, here);
    if (!hint.empty()) return text + hint;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (key.size() > 4 && key.size() < 80 && edit_distance(key, words[i]) == 1) same.push_back(paths_[i]);
    }
    return same.empty() ? fmt::format("{}; known: {}", text, fmt::join(here, ", "))
                        : fmt::format("{}; did you mean {}?", text, either(same));
  }

  void read_group(const YamlNode& node, const KeyGroup& group, const std::string& path) {
    if (node.kind == YamlKind::kScalar && !group.shorthand.empty()) {
      return read_group(written_out(node, group.shorthand), group, path);
    }
    if (node.kind == YamlKind::kNull)
      return add(null_line(node), path, "null not allowed (omit the key for its defaults)");
    if (node.kind != YamlKind::kMapping) {
      return add(node.line, path, fmt::format("expected mapping, got {}", shown(node)));
    }
    for (const YamlNode& child : node.children) {
      const auto known = std::ranges::find(group.keys, child.key, &Key::name);
      const std::string child_path = path + "." + child.key;
      if (known != group.keys.end()) {
        places_.add(child_path, child.key_line);
        read_key(child, *known, child_path);
      } else if (group.match != nullptr) {
        read_match_key(child, *group.match, child_path);
      } else {
        add(child.key_line, child_path, unknown_key(child.key, group, path));
      }
    }
    for (const Key& key : group.keys) {
      if (key.required && node.find(key.name) == nullptr) {
        add(node.line, path + "." + std::string(key.name), fmt::format("required key '{}' is missing", key.name));
      }
    }
    if (group.match != nullptr) check_kind(node, path);
  }

  // A value that was left out is where its key is, not where the next token is.
  static int null_line(const YamlNode& node) { return node.key_line > 0 ? node.key_line : node.line; }

  // The word that names the kind, or a field.
  void read_match_key(const YamlNode& child, EventMatch& match, const std::string& path) {
    if (child.kind != YamlKind::kScalar) {
      return add(child.line, path, fmt::format("expected one value, got {}", shown(child)));
    }
    const auto word = std::ranges::find(kKindWords, child.key);
    if (word == kKindWords.end()) {
      match.fields.push_back({child.key, child.text, child.key_line});
      return;
    }
    match.kind = child.text;
    match.is_input = static_cast<std::size_t>(word - kKindWords.begin()) >= kFirstInputWord;
    if (match.kind.empty()) add(child.line, path, "must name a kind");
  }

  void check_kind(const YamlNode& node, const std::string& path) {
    const auto kinds =
        std::ranges::count_if(kKindWords, [&](std::string_view word) { return node.find(word) != nullptr; });
    if (kinds == 1) return;
    add(node.line, path,
        fmt::format("{}; a match has one of {}", kinds == 0 ? "no kind" : "more than one kind",
                    fmt::join(kKindWords, ", ")));
  }

  void read_key(const YamlNode& node, const Key& key, const std::string& path) {
    if (const auto* group = std::get_if<GroupRef>(&key.value)) {
      return read_group(node, group->open(node.key_line), path);
    }
    if (const auto* list = std::get_if<ListRef>(&key.value)) return read_list(node, *list, path);
    if (key.type == ValueType::kFields) {
      return read_fields(node, *std::get<std::vector<FieldValue>*>(key.value), path);
    }
    if (node.kind == YamlKind::kNull) {
      const std::optional<std::string> standard = value_text(key);
      return add(null_line(node), path,
                 key.required ? "null not allowed; the key is required"
                 : standard.value_or("").empty()
                     ? "null not allowed (omit the key instead)"
                     : fmt::format("null not allowed (omit the key for the default {})", *standard));
    }
    if (node.kind != YamlKind::kScalar) {
      return add(node.line, path, fmt::format("expected {}, got {}", type_text(key), shown(node)));
    }
    const Status read = read_value(node, key);
    if (!read) add(node.line, path, read.error().detail);
  }

  void read_list(const YamlNode& node, const ListRef& list, const std::string& path) {
    if (node.kind == YamlKind::kNull)
      return add(null_line(node), path, "null not allowed (omit the key for an empty list)");
    if (node.kind != YamlKind::kList) return add(node.line, path, fmt::format("expected list, got {}", shown(node)));
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const YamlNode& child = node.children[i];
      const std::string child_path = fmt::format("{}[{}]", path, i);
      places_.add(child_path, child.line);
      read_group(child, list.append(child.line), child_path);
    }
  }

  void read_fields(const YamlNode& node, std::vector<FieldValue>& fields, const std::string& path) {
    if (node.kind != YamlKind::kMapping) {
      return add(node.line, path, fmt::format("expected mapping of fields to values, got {}", shown(node)));
    }
    for (const YamlNode& child : node.children) {
      if (child.kind == YamlKind::kScalar) {
        fields.push_back({child.key, child.text, child.key_line});
      } else {
        add(child.line, path + "." + child.key, fmt::format("expected one value, got {}", shown(child)));
      }
    }
  }

  std::vector<Problem>& problems_;
  Places places_;
  std::vector<std::string> paths_;
};

void apply_overrides(YamlNode& root, const std::vector<Override>& sets, std::vector<Problem>& problems) {
  YamlNode* top = root.find(kTop);
  if (top == nullptr) return;
  const std::string prefix = std::string(kTop) + ".";
  for (const Override& set : sets) {
    Scenario scratch;
    write_out(*top, scenario_keys(scratch));
    apply_override(*top, set.starts_with(prefix) ? set.substr(prefix.size()) : set, problems);
  }
}

}  // namespace

ReadScenario read_scenario(const std::string& file_text, const std::string& file_name,
                           const std::vector<Override>& sets) {
  ReadScenario result;
  std::optional<YamlNode> root = parse_yaml(file_text, result.problems);
  if (!root.has_value()) return result;
  apply_overrides(*root, sets, result.problems);
  Scenario scenario;
  scenario.file = file_name;
  Reader reader(result.problems);
  reader.read_root(*root, scenario);
  if (root->find(kTop) != nullptr) check_scenario(scenario, reader.places(), result.problems);
  std::ranges::stable_sort(result.problems, {}, &Problem::line);
  if (!result.problems.empty()) return result;
  scenario.resolved = resolved_yaml(scenario);
  result.scenario = std::move(scenario);
  return result;
}

ReadScenario read_scenario_file(const std::string& file_name, const std::vector<Override>& sets) {
  std::ifstream file(file_name, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) return {std::nullopt, {{0, "", "the file cannot be read"}}};
  return read_scenario(text.str(), file_name, sets);
}

std::string refusal_text(const std::string& file_name, const std::vector<Problem>& problems) {
  std::string text = fmt::format("{} has {} problem{}; nothing was started.\n", file_name, problems.size(),
                                 problems.size() == 1 ? "" : "s");
  constexpr std::size_t kWidestPath = 40;
  std::size_t width = 0;
  for (const Problem& problem : problems) width = std::max(width, std::min(problem.path.size(), kWidestPath));
  for (const Problem& problem : problems) {
    const std::string place = problem.line > 0       ? fmt::format("line {}", problem.line)
                              : problem.path.empty() ? ""
                                                     : "--set";
    text += fmt::format("  {:<8} {:<{}}  {}\n", place, problem.path, width, problem.text);
  }
  return text;
}

}  // namespace areal::config
