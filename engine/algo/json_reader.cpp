// Reads JSON text with nlohmann-json's event reader; see json_value.h. Its own value type is not used: it turns whole
// numbers beyond 64 bits into float64, and its ordered object takes quadratic time for a vocabulary.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "engine/algo/json_value.h"

namespace areal::algo {

namespace {

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

// Takes the reader's events; the names are the library's. False ends the reading.
class Builder {
 public:
  // NOLINTBEGIN(readability-identifier-naming)
  bool null() { return add({}); }
  bool boolean(bool truth) { return add(JsonValue::boolean(truth)); }
  bool number_integer(std::int64_t number) { return add_whole(fmt::format("{}", number)); }
  bool number_unsigned(std::uint64_t number) { return add_whole(fmt::format("{}", number)); }
  // Also whole numbers beyond 64 bits, which keep their digits.
  bool number_float(double number, const std::string& digits) {
    if (digits.find_first_not_of("-0123456789") == std::string::npos) return add_whole(digits);
    JsonValue made;
    made.kind = JsonValue::Kind::kReal;
    made.real = number;
    return add(std::move(made));
  }
  bool string(std::string& text) { return add(JsonValue::string(text)); }
  bool binary(std::vector<std::uint8_t>& /*bytes*/) { return false; }
  bool start_object(std::size_t /*size*/) { return open(JsonValue::Kind::kObject); }
  bool start_array(std::size_t /*size*/) { return open(JsonValue::Kind::kArray); }
  bool key(std::string& name) {
    stack_.back().keys.push_back(std::move(name));
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t at, const std::string& /*token*/, const nlohmann::detail::exception& /*problem*/) {
    at_ = at;
    return false;
  }
  // NOLINTEND(readability-identifier-naming)

  JsonValue take() { return std::move(done_); }
  [[nodiscard]] Error problem() const {
    if (too_deep_) return {Errc::kUnsupported, fmt::format("more than {} levels of JSON", kJsonDepth)};
    return {Errc::kInvalid, fmt::format("not JSON at byte {}", at_)};
  }

 private:
  bool add(JsonValue value) {
    (stack_.empty() ? done_ : stack_.back().items.emplace_back()) = std::move(value);
    return true;
  }
  bool add_whole(std::string digits) {
    JsonValue made;
    made.kind = JsonValue::Kind::kInteger;
    made.text = std::move(digits);
    return add(std::move(made));
  }
  bool open(JsonValue::Kind kind) {
    too_deep_ = stack_.size() >= kJsonDepth;
    if (too_deep_) return false;
    stack_.emplace_back().kind = kind;
    return true;
  }
  bool close() {
    JsonValue value = std::move(stack_.back());
    stack_.pop_back();
    if (value.is(JsonValue::Kind::kObject)) merge_repeated_keys(value);
    return add(std::move(value));
  }

  JsonValue done_;
  std::vector<JsonValue> stack_;  // Containers whose end is still to come.
  std::size_t at_ = 0;
  bool too_deep_ = false;
};

}  // namespace

Result<JsonValue> parse_json(std::string_view text) {
  // The library takes a zero byte for the end and passes over a byte order mark; Python refuses both.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return Error{Errc::kInvalid, fmt::format("not JSON at byte {}", zero)};
  }
  if (text.starts_with("\xEF\xBB\xBF")) return Error{Errc::kInvalid, "not JSON at byte 0"};
  Builder builder;
  if (!nlohmann::ordered_json::sax_parse(text, &builder)) return builder.problem();
  return builder.take();
}

}  // namespace areal::algo
