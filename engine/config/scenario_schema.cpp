// Makes the JSON Schema and the reference table from the keys of a default scenario.
#include "engine/config/scenario_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/config/scenario_keys.h"
#include "engine/config/scenario_values.h"

namespace areal::config {
namespace {

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// The members of one JSON object, in order.
class Members {
 public:
  Members& add(std::string_view name, std::string_view json) {
    text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", in_quotes(name), json);
    return *this;
  }
  [[nodiscard]] std::string json() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::string json_list(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + in_quotes(word);
  return "[" + text + "]";
}

constexpr std::string_view kScalarType = R"(["string", "number", "boolean"])";

// Of a scalar type; empty for the others.
std::string_view pattern_of(ValueType type) {
  switch (type) {
    case ValueType::kTime:
      return "^[0-9]+(ns|us|ms|s|m|h)$";
    case ValueType::kTimeRange:
      return "^[0-9]+(ns|us|ms|s|m|h)([.][.][0-9]+(ns|us|ms|s|m|h))?$";
    case ValueType::kBytes:
      return "^[0-9]+(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$";
    case ValueType::kRate:
      return "^[0-9]+(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)/s$";
    case ValueType::kRatio:
      return "^[0-9]+/[0-9]+$";
    case ValueType::kText:
    case ValueType::kNumber:
    case ValueType::kFlag:
    case ValueType::kDecimal:
    case ValueType::kChoice:
    case ValueType::kFields:
    case ValueType::kMapping:
    case ValueType::kList:
      break;
  }
  return {};
}

void add_type(Members& members, const Key& key);

// A match also has one word that names its kind, and fields that only the run knows.
void add_match(Members& properties, Members& schema) {
  std::string choices;
  for (const std::string_view word : kKindWords) {
    properties.add(word, Members().add("type", in_quotes("string")).json());
    choices += (choices.empty() ? "" : ", ") + Members().add("required", json_list({word})).json();
  }
  schema.add("oneOf", "[" + choices + "]");
  schema.add("additionalProperties", Members().add("type", kScalarType).json());
}

std::string group_schema(const KeyGroup& group) {
  Members properties;
  std::vector<std::string_view> required;
  for (const Key& key : group.keys) {
    Members schema;
    add_type(schema, key);
    properties.add(key.name, schema.add("description", in_quotes(key.doc)).json());
    if (key.required) required.push_back(key.name);
  }
  Members schema;
  schema.add("type", in_quotes("object"));
  if (group.match != nullptr) {
    add_match(properties, schema);
  } else {
    schema.add("additionalProperties", "false");
  }
  if (!required.empty()) schema.add("required", json_list(required));
  return schema.add("properties", properties.json()).json();
}

// The mapping, or the bare value that stands for it.
void add_group(Members& members, const KeyGroup& group) {
  const auto bare = std::ranges::find(group.keys, group.shorthand, &Key::name);
  std::string choices = group_schema(group);
  if (bare != group.keys.end()) {
    Members schema;
    add_type(schema, *bare);
    choices += ", " + schema.json();
  }
  members.add("anyOf", "[" + choices + "]");
}

void add_number(Members& members, const Key& key) {
  members.add("type", in_quotes("integer")).add("minimum", std::to_string(key.least));
  if (key.most < std::numeric_limits<std::uint64_t>::max()) members.add("maximum", std::to_string(key.most));
}

void add_type(Members& members, const Key& key) {
  if (const auto* group = std::get_if<GroupRef>(&key.value)) return add_group(members, group->open(0));
  if (const auto* list = std::get_if<ListRef>(&key.value)) {
    members.add("type", in_quotes("array")).add("items", group_schema(list->append(0)));
    return;
  }
  const std::string_view pattern = pattern_of(key.type);
  const bool is_plain =
      key.type == ValueType::kNumber || key.type == ValueType::kFlag || key.type == ValueType::kDecimal;
  if (const auto* choice = std::get_if<ChoiceRef>(&key.value)) {
    members.add("enum", json_list(choice->names));
  } else if (key.type == ValueType::kNumber) {
    add_number(members, key);
  } else if (key.type == ValueType::kFlag) {
    members.add("type", in_quotes("boolean"));
  } else if (key.type == ValueType::kDecimal) {
    // Some readers of YAML take 3e-6 for a string.
    members.add("type", R"(["number", "string"])").add("minimum", "0");
    members.add("pattern", in_quotes("^[0-9]+([.][0-9]+)?([eE][-+]?[0-9]{1,2})?$"));
  } else if (key.type == ValueType::kFields) {
    members.add("type", in_quotes("object"));
    members.add("additionalProperties", Members().add("type", kScalarType).json());
  } else {
    members.add("type", in_quotes("string"));
    if (!pattern.empty()) members.add("pattern", in_quotes(pattern));
  }
  const std::optional<std::string> standard = key.required ? std::nullopt : value_text(key);
  if (standard.has_value()) members.add("default", is_plain ? *standard : in_quotes(*standard));
}

std::string default_text(const Key& key) {
  if (key.required) return "required";
  const std::optional<std::string> standard = value_text(key);
  if (!standard.has_value()) return {};
  return standard->empty() ? "`''`" : "`" + *standard + "`";
}

std::string type_column(const Key& key) {
  if (const auto* choice = std::get_if<ChoiceRef>(&key.value)) {
    return fmt::format("`{}`", fmt::join(choice->names, "`, `"));
  }
  const std::string text = type_text(key);
  if (key.type == ValueType::kNumber && key.least > 0) return fmt::format("{} from {}", text, key.least);
  return text.substr(0, text.find(" such as"));
}

}  // namespace

std::string scenario_json_schema() {
  Scenario scratch;
  const KeyGroup top = scenario_keys(scratch);
  Members root;
  root.add("$schema", in_quotes("https://json-schema.org/draft/2020-12/schema"));
  root.add("title", in_quotes("areal-sim scenario")).add("type", in_quotes("object"));
  root.add("additionalProperties", "false").add("required", json_list({"scenario"}));
  root.add("properties", Members().add("scenario", group_schema(top)).json());
  return root.json() + "\n";
}

std::string scenario_key_table() {
  Scenario scratch;
  // Items and optional mappings are made while the table is walked; what they hold by default is what is printed.
  std::string table = "| key | type | default | meaning |\n|---|---|---|---|\n";
  for (const KeyPath& known : all_keys(scratch)) {
    table += fmt::format("| `{}` | {} | {} | {} |\n", known.path, type_column(known.key), default_text(known.key),
                         known.key.doc);
  }
  return table;
}

}  // namespace areal::config
