// Prints a scenario as YAML with every default filled in, along the table of keys.
#include <fmt/format.h>

#include <algorithm>

#include "engine/config/scenario_keys.h"
#include "engine/config/scenario_values.h"
#include "engine/config/scenario_yaml.h"

namespace areal::config {
namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

// A scalar that YAML reads back as the same text.
std::string scalar(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
  const bool is_null = text == "null" || text == "Null" || text == "NULL";
  const bool plain = !text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos && text[0] != '-';
  if (plain && !is_null) return std::string(text);
  std::string quoted;
  if (std::ranges::none_of(text, is_control)) {
    for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
    return "'" + quoted + "'";
  }
  for (const char c : text) {
    if (is_control(c)) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return "\"" + quoted + "\"";
}

void print_fields(std::string& out, const std::vector<FieldValue>& fields, std::size_t indent) {
  for (const FieldValue& field : fields) {
    out += fmt::format("{:{}}{}: {}\n", "", indent, scalar(field.name), scalar(field.value));
  }
}

void print_group(std::string& out, const KeyGroup& group, std::size_t indent);

void print_list(std::string& out, const ListRef& list, std::size_t indent) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::size_t start = out.size();
    print_group(out, list.item(i), indent + 2);
    out[start + indent] = '-';
  }
}

// Numbers, times and the like are plain, so that they are not read as strings.
bool is_word(ValueType type) { return type == ValueType::kText || type == ValueType::kChoice; }

void print_key(std::string& out, const Key& key, std::size_t indent) {
  const std::string head = fmt::format("{:{}}{}:", "", indent, key.name);
  if (const auto* group = std::get_if<GroupRef>(&key.value)) {
    if (!group->present()) return;
    out += head + "\n";
    print_group(out, group->open(0), indent + 2);
  } else if (const auto* list = std::get_if<ListRef>(&key.value)) {
    out += head + (list->size() == 0 ? " []\n" : "\n");
    print_list(out, *list, indent + 2);
  } else if (key.type == ValueType::kFields) {
    const auto& fields = *std::get<std::vector<FieldValue>*>(key.value);
    out += head + (fields.empty() ? " {}\n" : "\n");
    print_fields(out, fields, indent + 2);
  } else if (const std::optional<std::string> value = value_text(key)) {
    out += head + " " + (is_word(key.type) ? scalar(*value) : *value) + "\n";
  }
}

void print_group(std::string& out, const KeyGroup& group, std::size_t indent) {
  if (group.match != nullptr) {
    const std::string_view word = group.match->is_input ? kKindWords[kFirstInputWord] : kKindWords[0];
    out += fmt::format("{:{}}{}: {}\n", "", indent, word, scalar(group.match->kind));
  }
  for (const Key& key : group.keys) print_key(out, key, indent);
  if (group.match != nullptr) print_fields(out, group.match->fields, indent);
}

}  // namespace

std::string resolved_yaml(const Scenario& scenario) {
  Scenario copy = scenario;  // The table points into a scenario that may be written.
  std::string out = "scenario:\n";
  print_group(out, scenario_keys(copy), 2);
  return out;
}

}  // namespace areal::config
