// What a scenario file may say, for editors and for people: a JSON Schema and a reference, made from the table of keys.
#pragma once
#include <string>

namespace areal::config {

// JSON Schema (draft 2020-12). It knows types, words, limits and required keys; what must hold between keys, only
// read_scenario() knows.
std::string scenario_json_schema();

// The table of docs/scenarios.md, in Markdown: key, type, default, meaning.
std::string scenario_key_table();

}  // namespace areal::config
