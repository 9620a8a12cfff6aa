// Builds the tree from the parser's events, so that every value keeps its line and repeated keys are seen.
#include "engine/config/yaml_document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <utility>

namespace areal::config {
namespace {

// More than any scenario needs, and less than what makes the parser slow.
constexpr std::size_t kMaxTextBytes = 4U << 20;

int line_of(const YAML::Mark& mark) { return mark.line + 1; }

// Collects one document. Not thread-safe; lives for one parse.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::vector<Problem>& problems) : problems_(&problems) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check_anchor(mark, anchor);
    add({.kind = YamlKind::kNull, .line = line_of(mark)});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    refuse(mark, "aliases (*name) are not read; write the value out");
    add({.kind = YamlKind::kNull, .line = line_of(mark)});
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_anchor(mark, anchor);
    check_tag(mark, tag);
    add({.kind = YamlKind::kScalar, .line = line_of(mark), .quoted = tag == "!", .text = value});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    check_anchor(mark, anchor);
    check_tag(mark, tag);
    open_.push_back({.node = {.kind = YamlKind::kList, .line = line_of(mark)}});
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    check_anchor(mark, anchor);
    check_tag(mark, tag);
    open_.push_back({.node = {.kind = YamlKind::kMapping, .line = line_of(mark)}});
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] YamlNode take_root() { return std::move(root_); }

 private:
  struct Open {
    YamlNode node;
    std::optional<YamlNode> key = {};  // Of a mapping: read, and still without a value.
  };

  void refuse(const YAML::Mark& mark, std::string text) { problems_->push_back({line_of(mark), "", std::move(text)}); }
  void check_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) refuse(mark, "anchors (&name) are not read; write the value out");
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, fmt::format("tags ({}) are not read", tag));
  }

  void close() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == YamlKind::kList) {
      parent.node.children.push_back(std::move(node));
    } else if (!parent.key.has_value()) {
      parent.key = std::move(node);
    } else {
      add_value(parent, std::move(node));
    }
  }

  void add_value(Open& parent, YamlNode value) {
    const YamlNode key = *std::exchange(parent.key, std::nullopt);
    if (key.kind != YamlKind::kScalar) {
      problems_->push_back({key.line, "", "a key must be a word"});
      return;
    }
    if (const YamlNode* first = parent.node.find(key.text)) {
      problems_->push_back(
          {key.line, "", fmt::format("key '{}' is given twice; first in line {}", key.text, first->key_line)});
      return;
    }
    value.key = key.text;
    value.key_line = key.line;
    parent.node.children.push_back(std::move(value));
  }

  std::vector<Problem>* problems_;
  std::vector<Open> open_;
  YamlNode root_;
};

// One step of an override's path: a key, or an index of a list.
struct Step {
  std::string key;
  std::optional<std::size_t> index;
};

std::optional<std::vector<Step>> parse_path(std::string_view path) {
  std::vector<Step> steps;
  while (!path.empty()) {
    if (path.front() == '[') {
      const std::size_t end = path.find(']');
      const std::string_view digits = path.substr(1, end == std::string_view::npos ? end : end - 1);
      if (end == std::string_view::npos || digits.empty() || digits.size() > 6 || steps.empty()) return std::nullopt;
      if (digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
      steps.push_back({"", std::stoul(std::string(digits))});
      path.remove_prefix(end + 1);
      if (path.starts_with('.') && path.size() > 1) path.remove_prefix(1);
      continue;
    }
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    if (end == 0) return std::nullopt;
    steps.push_back({std::string(path.substr(0, end)), std::nullopt});
    path.remove_prefix(end);
    if (path == ".") return std::nullopt;
    if (path.starts_with('.')) path.remove_prefix(1);
  }
  if (steps.empty()) return std::nullopt;
  return steps;
}

// The child that `step` names, made if it is missing; null with `error` set if it cannot be.
YamlNode* enter(YamlNode& node, const Step& step, std::string& error) {
  const YamlKind wanted = step.index.has_value() ? YamlKind::kList : YamlKind::kMapping;
  if (node.kind == YamlKind::kNull) node.kind = wanted;
  if (node.kind != wanted) {
    error = step.index.has_value() ? fmt::format("there is no list before [{}], but {}", *step.index, shown(node))
                                   : fmt::format("there is no mapping with '{}', but {}", step.key, shown(node));
    return nullptr;
  }
  if (!step.index.has_value()) {
    if (YamlNode* found = node.find(step.key)) return found;
    node.children.push_back({.key = step.key});
    return &node.children.back();
  }
  if (*step.index > node.children.size()) {
    error = fmt::format("the list has {} items; there is no [{}]", node.children.size(), *step.index);
    return nullptr;
  }
  if (*step.index == node.children.size()) node.children.emplace_back();
  return &node.children[*step.index];
}

// The value did not come from a line of the file.
void forget_lines(YamlNode& root) {
  std::vector<YamlNode*> todo{&root};
  while (!todo.empty()) {
    YamlNode* node = todo.back();
    todo.pop_back();
    node->line = 0;
    node->key_line = 0;
    for (YamlNode& child : node->children) todo.push_back(&child);
  }
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view name) const {
  const auto place = std::ranges::find(children, name, &YamlNode::key);
  return kind == YamlKind::kMapping && place != children.end() ? &*place : nullptr;
}

YamlNode* YamlNode::find(std::string_view name) {
  const auto place = std::ranges::find(children, name, &YamlNode::key);
  return kind == YamlKind::kMapping && place != children.end() ? &*place : nullptr;
}

std::string shown(const YamlNode& node) {
  switch (node.kind) {
    case YamlKind::kNull:
      return "null";
    case YamlKind::kMapping:
      return "a mapping";
    case YamlKind::kList:
      return "a list";
    case YamlKind::kScalar:
      break;
  }
  constexpr std::size_t kMaxShown = 80;
  const std::string cut = node.text.size() <= kMaxShown ? node.text : node.text.substr(0, kMaxShown) + "...";
  return fmt::format("{}'{}'", node.quoted ? "string " : "", cut);
}

std::optional<YamlNode> parse_yaml(const std::string& text, std::vector<Problem>& problems) {
  if (text.size() > kMaxTextBytes) {
    problems.push_back({1, "", fmt::format("{} bytes are too many; at most {}", text.size(), kMaxTextBytes)});
    return std::nullopt;
  }
  TreeBuilder builder(problems);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      problems.push_back({1, "", "the file is empty"});
      return std::nullopt;
    }
    YamlNode root = builder.take_root();
    TreeBuilder second(problems);
    if (parser.HandleNextDocument(second)) {
      problems.push_back({second.take_root().line, "", "a second document; a file holds one"});
    }
    return root;
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 1 : line_of(error.mark);
    const int column = error.mark.is_null() ? 1 : error.mark.column + 1;
    problems.push_back({line, "", fmt::format("not YAML: {} at column {}", error.msg, column)});
  } catch (const std::exception& error) {
    problems.push_back({1, "", fmt::format("not YAML: {}", error.what())});
  }
  return std::nullopt;
}

void apply_override(YamlNode& root, const std::string& change, std::vector<Problem>& problems) {
  const std::size_t equals = change.find('=');
  const std::string path = change.substr(0, equals);
  const std::optional<std::vector<Step>> steps = parse_path(path);
  if (equals == std::string::npos || !steps.has_value()) {
    problems.push_back({0, change, "a change is written path.to.key=value, such as work.updates=20"});
    return;
  }
  std::vector<Problem> value_problems;
  const std::string text = change.substr(equals + 1);
  std::optional<YamlNode> value{YamlNode{}};
  if (text.find_first_not_of(" \t") != std::string::npos) value = parse_yaml(text, value_problems);
  if (!value.has_value() || !value_problems.empty()) {
    problems.push_back({0, path, value_problems.empty() ? "no value" : value_problems.front().text});
    return;
  }
  forget_lines(*value);
  YamlNode* place = &root;
  for (const Step& step : *steps) {
    std::string error;
    place = enter(*place, step, error);
    if (place == nullptr) {
      problems.push_back({0, path, std::move(error)});
      return;
    }
  }
  value->key = place->key;
  *place = *std::move(value);
}

}  // namespace areal::config
