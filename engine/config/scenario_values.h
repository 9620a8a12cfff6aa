// One scalar of a scenario: read from YAML with an error that says what would be right, and printed in canonical form.
#pragma once
#include <optional>
#include <string>

#include "engine/base/result.h"
#include "engine/config/scenario_keys.h"
#include "engine/config/yaml_document.h"

namespace areal::config {

// Stores the scalar `node` where `key` points. REQUIRES: key.type is a scalar type, node.kind is kScalar.
Status read_value(const YamlNode& node, const Key& key);

// The value as read_value() takes it, not quoted; nothing if there is none (an optional key that was left out, a
// mapping or a list).
std::optional<std::string> value_text(const Key& key);

// "whole number", "time such as 30s, 10ms or 200us": what a key of this type takes.
std::string type_text(const Key& key);

}  // namespace areal::config
