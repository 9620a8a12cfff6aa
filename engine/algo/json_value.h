// A JSON value whose objects keep the order of their keys, and its canonical text.
//
// For what must come out byte for byte as Python's json module writes it with ensure_ascii off and separators "," and
// ":": fingerprints and rendered tool schemas. Whole numbers of any size keep their digits; others are float64, written
// as repr() does. Not read: NaN, Infinity, lone surrogates, more than kJsonDepth levels, bytes that are no UTF-8. Of a
// repeated key the last value counts, at the first place. Plain values.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace areal::algo {

inline constexpr std::size_t kJsonDepth = 128;

struct JsonValue {
  enum class Kind : std::uint8_t { kNull, kBool, kInteger, kReal, kText, kArray, kObject };

  Kind kind = Kind::kNull;
  bool truth = false;             // kBool.
  double real = 0;                // kReal; finite.
  std::string text;               // kText: UTF-8. kInteger: its digits, "-" before them if it is below 0.
  std::vector<JsonValue> items;   // kArray, kObject.
  std::vector<std::string> keys;  // kObject: one for each item.

  static JsonValue null() { return {}; }
  static JsonValue boolean(bool truth);
  static JsonValue string(std::string_view text);
  static JsonValue object();

  [[nodiscard]] bool is(Kind wanted) const { return kind == wanted; }
  // Of an object; null if there is no such key, or this is no object.
  [[nodiscard]] const JsonValue* find(std::string_view key) const;
  // Replaces, or adds at the end. REQUIRES: an object.
  void set(std::string_view key, JsonValue value);
};

// kInvalid: not JSON, with the byte at which it stops being so; kUnsupported: too deep.
Result<JsonValue> parse_json(std::string_view text);

// Without blanks. kSorted: keys in the order of their code points.
enum class KeyOrder : std::uint8_t { kAsWritten, kSorted };
std::string json_text(const JsonValue& value, KeyOrder order);

}  // namespace areal::algo
