// Reads JSON text; see json_value.h.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/algo/json_value.h"

namespace areal::algo {

namespace {

void append_utf8(std::string& out, std::uint32_t code) {
  const auto push = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    push(code);
  } else if (code < 0x800) {
    push(0xC0 | code >> 6), push(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    push(0xE0 | code >> 12), push(0x80 | (code >> 6 & 0x3F)), push(0x80 | (code & 0x3F));
  } else {
    push(0xF0 | code >> 18), push(0x80 | (code >> 12 & 0x3F)), push(0x80 | (code >> 6 & 0x3F)),
        push(0x80 | (code & 0x3F));
  }
}

// An object's keys each once: of equal ones the first keeps its place, the last its value.
void merge_repeated_keys(JsonValue& object) {
  std::vector<std::size_t> order(object.keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t at) -> const std::string& { return object.keys[at]; });
  std::vector<std::uint8_t> repeated(order.size(), 0);
  bool any = false;
  for (std::size_t at = order.size(); at > 1; --at) {
    const std::size_t later = order[at - 1];
    const std::size_t earlier = order[at - 2];
    if (object.keys[later] != object.keys[earlier]) continue;
    object.items[earlier] = std::move(object.items[later]);
    repeated[later] = 1;
    any = true;
  }
  if (!any) return;
  std::size_t kept = 0;
  for (std::size_t at = 0; at < repeated.size(); ++at) {
    if (repeated[at] != 0) continue;
    if (kept != at) {
      object.keys[kept] = std::move(object.keys[at]);
      object.items[kept] = std::move(object.items[at]);
    }
    ++kept;
  }
  object.keys.resize(kept);
  object.items.resize(kept);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<JsonValue> read() {
    JsonValue value;
    while (true) {
      if (!begin_value(value)) return problem();
      if (opened_) continue;  // The first item of a container that was just opened.
      const Step step = end_value(value);
      if (step == Step::kWrong) return problem();
      if (step == Step::kDone) return value;
    }
  }

 private:
  // A container whose end is still to come, and the key that its next item gets.
  struct Frame {
    JsonValue value;
    std::string key;
  };
  enum class Step : std::uint8_t { kDone, kNextItem, kWrong };

  [[nodiscard]] Error problem() const {
    if (too_deep_) return {Errc::kUnsupported, fmt::format("more than {} levels of JSON", kJsonDepth)};
    return {Errc::kInvalid, fmt::format("not JSON at byte {}", at_)};
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  // A scalar or an empty container goes to `value`; another container is opened, and opened_ says so.
  bool begin_value(JsonValue& value) {
    skip_blanks();
    opened_ = false;
    value = {};
    if (peek() == '{' || peek() == '[') return begin_container(value);
    if (peek() == '"') {
      value.kind = JsonValue::Kind::kText;
      return read_text(value.text);
    }
    if (take("null")) return true;
    if (take("true")) return value = JsonValue::boolean(true), true;
    if (take("false")) return value = JsonValue::boolean(false), true;
    return read_number(value);
  }

  bool begin_container(JsonValue& value) {
    const bool object = peek() == '{';
    ++at_;
    value.kind = object ? JsonValue::Kind::kObject : JsonValue::Kind::kArray;
    skip_blanks();
    if (take(object ? "}" : "]")) return true;
    too_deep_ = stack_.size() >= kJsonDepth;
    if (too_deep_) return false;
    stack_.push_back({std::exchange(value, {}), {}});
    opened_ = true;
    return !object || read_key();
  }

  // Puts a finished value into the container around it, and closes what ends here.
  Step end_value(JsonValue& value) {
    while (!stack_.empty()) {
      Frame& top = stack_.back();
      const bool object = top.value.is(JsonValue::Kind::kObject);
      top.value.items.push_back(std::move(value));
      if (object) top.value.keys.push_back(std::move(top.key));
      skip_blanks();
      if (take(",")) return !object || read_key() ? Step::kNextItem : Step::kWrong;
      if (!take(object ? "}" : "]")) return Step::kWrong;
      value = std::move(top.value);
      stack_.pop_back();
      if (object) merge_repeated_keys(value);
    }
    skip_blanks();
    return at_ == text_.size() ? Step::kDone : Step::kWrong;
  }

  bool read_key() {
    skip_blanks();
    stack_.back().key.clear();
    if (peek() != '"' || !read_text(stack_.back().key)) return false;
    skip_blanks();
    return take(":");
  }

  std::optional<std::uint32_t> read_hex() {
    std::uint32_t code = 0;
    const char* begin = text_.data() + at_;
    if (text_.size() - at_ < 4) return std::nullopt;
    const auto [end, error] = std::from_chars(begin, begin + 4, code, 16);
    if (error != std::errc() || end != begin + 4) return std::nullopt;
    at_ += 4;
    return code;
  }

  bool read_escape(std::string& out) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
    const char letter = peek();
    ++at_;
    if (letter != 'u') {
      const std::size_t place = kLetters.find(letter);
      if (letter == '\0' || place == std::string_view::npos) return false;
      out.push_back(kMeant[place]);
      return true;
    }
    const auto first = read_hex();
    if (!first || (*first >= 0xDC00 && *first < 0xE000)) return false;
    if (*first < 0xD800 || *first >= 0xE000) return append_utf8(out, *first), true;
    if (!take("\\u")) return false;
    const auto second = read_hex();
    if (!second || *second < 0xDC00 || *second >= 0xE000) return false;
    append_utf8(out, 0x10000 + ((*first - 0xD800) << 10) + (*second - 0xDC00));
    return true;
  }

  bool read_text(std::string& out) {
    ++at_;  // The opening quote.
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\') {
        out.push_back(c);
      } else if (!read_escape(out)) {
        return false;
      }
    }
    return false;
  }

  std::size_t skip_digits() {
    const std::size_t begin = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ - begin;
  }

  bool read_number(JsonValue& value) {
    const std::size_t begin = at_;
    take("-");
    if (!take("0") && skip_digits() == 0) return false;
    const std::size_t whole = at_;
    if (take(".") && skip_digits() == 0) return false;
    if (take("e") || take("E")) {
      if (!take("+")) take("-");
      if (skip_digits() == 0) return false;
    }
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (at_ == whole) {
      value.kind = JsonValue::Kind::kInteger;
      value.text = digits == "-0" ? "0" : digits;
      return true;
    }
    value.kind = JsonValue::Kind::kReal;
    return std::from_chars(digits.data(), digits.data() + digits.size(), value.real).ec == std::errc();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Frame> stack_;
  bool opened_ = false;
  bool too_deep_ = false;
};

}  // namespace

Result<JsonValue> parse_json(std::string_view text) { return Reader(text).read(); }

}  // namespace areal::algo
