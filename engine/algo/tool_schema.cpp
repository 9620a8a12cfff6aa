#include "engine/algo/tool_schema.h"

#include <optional>

namespace areal::algo {

namespace {

using Kind = JsonValue::Kind;

bool is_function_type(const JsonValue& tool) {
  const JsonValue* type = tool.find("type");
  return type != nullptr && type->is(Kind::kText) && type->text == "function";
}

JsonValue nested(const JsonValue& tool) {
  if (!is_function_type(tool) || tool.find("function") != nullptr || tool.find("name") == nullptr) return tool;
  JsonValue function = JsonValue::object();
  for (std::size_t at = 0; at < tool.keys.size(); ++at) {
    if (tool.keys[at] == "type") continue;
    function.keys.push_back(tool.keys[at]);  // Each once; looking for it first would take quadratic time.
    function.items.push_back(tool.items[at]);
  }
  JsonValue made = JsonValue::object();
  made.set("type", JsonValue::string("function"));
  made.set("function", std::move(function));
  return made;
}

// The value of `key`, `absent` without one; nothing if it is of another kind than `wanted` (and not null, if
// `or_null`).
std::optional<JsonValue> member(const JsonValue& object, std::string_view key, Kind wanted, bool or_null,
                                const JsonValue& absent) {
  const JsonValue* found = object.find(key);
  if (found == nullptr) return absent;
  if (found->is(wanted) || (or_null && found->is(Kind::kNull))) return *found;
  return std::nullopt;
}

std::optional<JsonValue> canonical(const JsonValue& tool) {
  const JsonValue* function = tool.find("function");
  if (!is_function_type(tool) || function == nullptr || !function->is(Kind::kObject)) return std::nullopt;
  const JsonValue* name = function->find("name");
  const auto description = member(*function, "description", Kind::kText, true, JsonValue::null());
  const auto parameters = member(*function, "parameters", Kind::kObject, true, JsonValue::null());
  const auto strict = member(*function, "strict", Kind::kBool, false, JsonValue::boolean(false));
  if (name == nullptr || !name->is(Kind::kText) || !description || !parameters || !strict) return std::nullopt;
  JsonValue made_function = JsonValue::object();
  made_function.set("description", *description);
  made_function.set("name", *name);
  made_function.set("parameters", *parameters);
  made_function.set("strict", *strict);
  JsonValue made = JsonValue::object();
  made.set("type", JsonValue::string("function"));
  made.set("function", std::move(made_function));
  return made;
}

}  // namespace

AlignedTools align_tools(const std::vector<JsonValue>& tools, bool canonical_form_known) {
  AlignedTools aligned;
  aligned.tools.reserve(tools.size());
  if (!canonical_form_known && !tools.empty()) {
    aligned.warnings.emplace_back("the server's canonical form is not known: tools get no defaults");
  }
  for (const JsonValue& tool : tools) {
    if (!tool.is(Kind::kObject)) {
      aligned.warnings.emplace_back("a tool is no object and stays as it is");
      aligned.tools.push_back(tool);
      continue;
    }
    JsonValue made = nested(tool);
    if (canonical_form_known) {
      if (auto found = canonical(made)) {
        made = std::move(*found);
      } else {
        aligned.warnings.emplace_back("a tool is not valid and stays as it is");
      }
    }
    aligned.tools.push_back(std::move(made));
  }
  return aligned;
}

JsonValue with_parsed_tool_arguments(const JsonValue& message) {
  const JsonValue* calls = message.find("tool_calls");
  if (calls == nullptr || !calls->is(Kind::kArray)) return message;
  JsonValue made_calls = *calls;
  for (JsonValue& call : made_calls.items) {
    const JsonValue* function = call.find("function");
    const JsonValue* arguments = function == nullptr ? nullptr : function->find("arguments");
    if (arguments == nullptr || !arguments->is(Kind::kText)) continue;
    auto parsed = parse_json(arguments->text);
    if (!parsed || !parsed->is(Kind::kObject)) continue;
    JsonValue made_function = *function;
    made_function.set("arguments", std::move(parsed).value());
    call.set("function", std::move(made_function));
  }
  JsonValue made = message;
  made.set("tool_calls", std::move(made_calls));
  return made;
}

}  // namespace areal::algo
