// Tool schemas in the form in which the inference server renders them itself, so that prompts agree byte for byte.
//
// Canonical: {"type", "function": {"description", "name", "parameters", "strict"}} in this order; a description that is
// absent is null, parameters likewise, an absent strict is false; other keys go. Each tool on its own:
//   not an object -> as it is; {"type": "function", "name", ...} -> all but the type moves under "function"; then what
//   is no valid tool stays as it now is, with a warning. Aligning twice is aligning once.
// Without the server's own canonical form at hand tools are only nested. Only for servers that render so. Pure
// functions. Source: the tool models of the server's OpenAI-compatible route.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "engine/algo/json_value.h"

namespace areal::algo {

struct AlignedTools {
  std::vector<JsonValue> tools;
  std::vector<std::string> warnings;
};

AlignedTools align_tools(const std::vector<JsonValue>& tools, bool canonical_form_known);

// "arguments" of each of a message's tool calls, where they are the text of a JSON object, become that object; anything
// else stays. For templates that walk through the arguments.
JsonValue with_parsed_tool_arguments(const JsonValue& message);

}  // namespace areal::algo
