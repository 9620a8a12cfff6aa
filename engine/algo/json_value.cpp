#include "engine/algo/json_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "engine/base/check.h"

namespace areal::algo {

namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\b':
        out += "\\b";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out.push_back(c);
        }
    }
  }
  return out + "\"";
}

// As Python's repr(): the fewest digits that read back, with an exponent outside [1e-4, 1e16).
std::string real_text(double value) {
  std::array<char, 400> buffer{};
  const auto scientific =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  std::string text(buffer.data(), scientific.ptr);
  const std::size_t mark = text.find('e');
  int exponent = 0;
  const char* digits = text.data() + mark + (text[mark + 1] == '+' ? 2 : 1);
  std::from_chars(digits, text.data() + text.size(), exponent);
  if (exponent < -4 || exponent >= 16) return text;
  const auto fixed = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  text.assign(buffer.data(), fixed.ptr);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

std::string scalar_text(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      return "null";
    case JsonValue::Kind::kBool:
      return value.truth ? "true" : "false";
    case JsonValue::Kind::kInteger:
      return value.text;
    case JsonValue::Kind::kReal:
      return real_text(value.real);
    case JsonValue::Kind::kText:
      return quoted(value.text);
    case JsonValue::Kind::kArray:
    case JsonValue::Kind::kObject:
      break;
  }
  AREAL_CHECK(false);
  return {};
}

// A container that is being written: which items, and how many of them are out.
struct Open {
  const JsonValue* value = nullptr;
  std::vector<std::size_t> order;
  std::size_t written = 0;
};

Open open(const JsonValue& value, KeyOrder order) {
  Open made{&value, std::vector<std::size_t>(value.items.size()), 0};
  std::iota(made.order.begin(), made.order.end(), std::size_t{0});
  if (order == KeyOrder::kSorted && value.is(JsonValue::Kind::kObject)) {
    std::ranges::stable_sort(made.order, {}, [&](std::size_t at) -> const std::string& { return value.keys[at]; });
  }
  return made;
}

bool is_container(const JsonValue& value) {
  return value.is(JsonValue::Kind::kArray) || value.is(JsonValue::Kind::kObject);
}

}  // namespace

JsonValue JsonValue::boolean(bool truth) {
  JsonValue made;
  made.kind = Kind::kBool;
  made.truth = truth;
  return made;
}

JsonValue JsonValue::string(std::string_view text) {
  JsonValue made;
  made.kind = Kind::kText;
  made.text = text;
  return made;
}

JsonValue JsonValue::object() {
  JsonValue made;
  made.kind = Kind::kObject;
  return made;
}

const JsonValue* JsonValue::find(std::string_view key) const {
  const auto place = std::ranges::find(keys, key);
  return place == keys.end() ? nullptr : &items[static_cast<std::size_t>(place - keys.begin())];
}

void JsonValue::set(std::string_view key, JsonValue value) {
  AREAL_CHECK(is(Kind::kObject));
  const auto place = std::ranges::find(keys, key);
  if (place != keys.end()) {
    items[static_cast<std::size_t>(place - keys.begin())] = std::move(value);
    return;
  }
  keys.emplace_back(key);
  items.push_back(std::move(value));
}

std::string json_text(const JsonValue& value, KeyOrder order) {
  if (!is_container(value)) return scalar_text(value);
  std::string out(1, value.is(JsonValue::Kind::kObject) ? '{' : '[');
  std::vector<Open> stack = {open(value, order)};
  while (!stack.empty()) {
    Open& top = stack.back();
    const bool object = top.value->is(JsonValue::Kind::kObject);
    if (top.written == top.order.size()) {
      out.push_back(object ? '}' : ']');
      stack.pop_back();
      continue;
    }
    if (top.written > 0) out.push_back(',');
    const std::size_t at = top.order[top.written++];
    if (object) out += quoted(top.value->keys[at]) + ":";
    const JsonValue& item = top.value->items[at];
    if (is_container(item)) {
      out.push_back(item.is(JsonValue::Kind::kObject) ? '{' : '[');
      stack.push_back(open(item, order));
    } else {
      out += scalar_text(item);
    }
  }
  return out;
}

}  // namespace areal::algo
