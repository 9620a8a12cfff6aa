// Reads and prints numbers, times, sizes, ratios, decimals and words.
#include "engine/config/scenario_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <type_traits>
#include <utility>

#include "engine/base/text.h"

namespace areal::config {
namespace {

struct Unit64 {
  std::string_view name;
  std::uint64_t scale;
};

// Largest first: a value is printed in the largest unit that it is a whole number of.
constexpr std::array<Unit64, 6> kTimeUnits{{{"h", 3'600'000'000'000},
                                            {"m", 60'000'000'000},
                                            {"s", 1'000'000'000},
                                            {"ms", 1'000'000},
                                            {"us", 1'000},
                                            {"ns", 1}}};
constexpr std::array<Unit64, 5> kByteUnits{
    {{"TB", 1'000'000'000'000}, {"GB", 1'000'000'000}, {"MB", 1'000'000}, {"kB", 1'000}, {"B", 1}}};

// Ten years: sums and products of a scenario's times stay far below the 292 years that an Instant can count.
constexpr Duration kLongestTime{87'600 * 3'600'000'000'000};

std::string in_units(std::uint64_t value, std::span<const Unit64> units, std::string_view zero) {
  if (value == 0) return std::string(zero);
  const auto fits = std::ranges::find_if(units, [value](const Unit64& unit) { return value % unit.scale == 0; });
  return fmt::format("{}{}", value / fits->scale, fits->name);
}

std::string time_text(Duration time) { return in_units(static_cast<std::uint64_t>(time.ns), kTimeUnits, "0s"); }

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t number = 0;
  if (!is_digits(text)) return std::nullopt;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc{} ? std::optional(number) : std::nullopt;
}

Error refused(std::string text) { return {Errc::kInvalid, std::move(text)}; }

Error wrong_type(std::string_view wanted, const YamlNode& node) {
  return refused(fmt::format("expected {}, got {}", wanted, shown(node)));
}

Result<std::uint64_t> read_number(const YamlNode& node, const Key& key) {
  if (node.quoted) return wrong_type("whole number", node);
  const std::string_view text = node.text;
  const auto too_small = [&] {
    const std::string note = key.least_means.empty() ? "" : fmt::format(" ({})", key.least_means);
    return refused(fmt::format("must be >= {}{}, got {}", key.least, note, text));
  };
  if (text.starts_with('-') && is_digits(text.substr(1))) return too_small();
  if (!is_digits(text)) return wrong_type("whole number", node);
  const std::optional<std::uint64_t> number = whole_number(text);
  if (!number.has_value() || *number > key.most) return refused(fmt::format("must be <= {}, got {}", key.most, text));
  if (*number < key.least) return too_small();
  return *number;
}

Result<Duration> read_time(std::string_view text, const Key& key) {
  if (is_digits(text)) return refused(fmt::format("'{0}' has no unit; write {0}s or {0}ms", text));
  const std::optional<Duration> time = parse_duration(text);
  if (!time.has_value()) {
    return refused(fmt::format("'{}' is not a time: a whole number with a unit, such as 30s, 10ms or 200us", text));
  }
  if (*time > kLongestTime) return refused(fmt::format("must be <= 87600h, got {}", text));
  if (static_cast<std::uint64_t>(time->ns) < key.least) return refused(fmt::format("must be > 0s, got {}", text));
  return *time;
}

Result<DurationRange> read_range(std::string_view text, const Key& key) {
  const std::size_t dots = text.find("..");
  const std::string_view least_text = text.substr(0, dots);
  const std::string_view most_text = dots == std::string_view::npos ? least_text : text.substr(dots + 2);
  Result<Duration> least = read_time(least_text, key);
  if (!least) return std::move(least).error();
  Result<Duration> most = read_time(most_text, key);
  if (!most) return std::move(most).error();
  if (*most < *least) return refused(fmt::format("'{}': the range ends before it starts", text));
  return DurationRange{*least, *most};
}

Result<std::uint64_t> read_bytes(std::string_view text, const Key& key) {
  const bool is_rate = key.type == ValueType::kRate;
  const std::string_view example = is_rate ? "25GB/s" : "141GB";
  if (is_digits(text)) return refused(fmt::format("'{}' has no unit; write for example {}", text, example));
  const bool has_per = text.ends_with("/s");
  const std::optional<std::uint64_t> bytes = parse_bytes(has_per ? text.substr(0, text.size() - 2) : text);
  if (!bytes.has_value() || has_per != is_rate) {
    return refused(fmt::format("'{}' is not a {}: a whole number with a unit, such as {}", text,
                               is_rate ? "rate" : "size", example));
  }
  if (*bytes < key.least) return refused(fmt::format("must be > 0, got {}", text));
  if (*bytes > key.most) return refused(fmt::format("must be <= {}, got {}", key.most, text));
  return *bytes;
}

Result<Ratio> read_ratio(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::optional<std::uint64_t> over = whole_number(text.substr(0, slash));
  const std::optional<std::uint64_t> under = whole_number(text.substr(std::min(slash + 1, text.size())));
  if (!over.has_value() || !under.has_value()) {
    return refused(fmt::format("'{}' is not a chance: a ratio of whole numbers, such as 1/500", text));
  }
  const Ratio ratio{over.value_or(0), under.value_or(0)};
  if (ratio.denominator == 0 || ratio.numerator > ratio.denominator) {
    return refused(fmt::format("a chance is from 0/1 to 1/1, got {}", text));
  }
  return ratio;
}

// Digits, a point with digits, an exponent: what every reader of decimals takes alike. Not negative.
Status check_decimal(const YamlNode& node, const Key& key) {
  std::string_view rest = node.text;
  const auto skip_digits = [&rest] {
    const std::size_t count = std::min(rest.find_first_not_of("0123456789"), rest.size());
    rest.remove_prefix(count);
    return count > 0;
  };
  bool good = !node.quoted && skip_digits();
  if (good && rest.starts_with('.')) {
    rest.remove_prefix(1);
    good = skip_digits();
  }
  if (good && (rest.starts_with('e') || rest.starts_with('E'))) {
    rest.remove_prefix(1);
    if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
    good = rest.size() <= 2 && skip_digits();
  }
  if (!good || !rest.empty()) return wrong_type("decimal number such as 0.9 or 3e-6", node);
  if (key.name.starts_with("beta") && node.text != "0" && !node.text.starts_with("0.")) {
    return refused(fmt::format("must be from 0.0 up to, not including, 1, got {}", node.text));
  }
  return Unit{};
}

Status read_choice(const YamlNode& node, const ChoiceRef& choice) {
  const auto place = std::ranges::find(choice.names, node.text);
  if (place == choice.names.end()) {
    return refused(fmt::format("'{}' is not one of {}{}", node.text, fmt::join(choice.names, ", "),
                               did_you_mean(node.text, choice.names)));
  }
  choice.set(static_cast<std::size_t>(place - choice.names.begin()));
  return Unit{};
}

// Stores a value that was read as a T into wherever a T can go.
template <class T>
Status store(Result<T> read, const ValueRef& target) {
  if (!read) return std::move(read).error();
  std::visit(
      [&read](const auto& place) {
        using Place = std::remove_cvref_t<decltype(place)>;
        if constexpr (std::is_pointer_v<Place>) {
          using Target = std::remove_pointer_t<Place>;
          if constexpr (std::is_integral_v<T> && std::is_integral_v<Target> && !std::is_same_v<Target, bool>) {
            *place = static_cast<Target>(*read);
          } else if constexpr (!std::is_integral_v<T> && std::is_assignable_v<Target&, T>) {
            *place = *read;
          }
        }
      },
      target);
  return Unit{};
}

}  // namespace

Status read_value(const YamlNode& node, const Key& key) {
  switch (key.type) {
    case ValueType::kText:
      return store<std::string>(node.text, key.value);
    case ValueType::kNumber:
      return store(read_number(node, key), key.value);
    case ValueType::kTime:
      return store(read_time(node.text, key), key.value);
    case ValueType::kTimeRange:
      return store(read_range(node.text, key), key.value);
    case ValueType::kBytes:
    case ValueType::kRate:
      return store(read_bytes(node.text, key), key.value);
    case ValueType::kRatio:
      return store(read_ratio(node.text), key.value);
    case ValueType::kChoice:
      return read_choice(node, std::get<ChoiceRef>(key.value));
    case ValueType::kDecimal:
      AREAL_TRY(check_decimal(node, key));
      return store<std::string>(node.text, key.value);
    case ValueType::kFlag:
      if (node.quoted || (node.text != "true" && node.text != "false")) return wrong_type("true or false", node);
      *std::get<bool*>(key.value) = node.text == "true";
      return Unit{};
    case ValueType::kFields:
    case ValueType::kMapping:
    case ValueType::kList:
      break;
  }
  return wrong_type(type_text(key), node);
}

std::optional<std::string> value_text(const Key& key) {
  if (const auto* choice = std::get_if<ChoiceRef>(&key.value)) {
    const std::size_t index = choice->get();
    return index < choice->names.size() ? std::optional(std::string(choice->names[index])) : std::nullopt;
  }
  return std::visit(
      [&key](const auto& place) -> std::optional<std::string> {
        using Place = std::remove_cvref_t<decltype(place)>;
        if constexpr (std::is_same_v<Place, std::string*>) return *place;
        if constexpr (std::is_same_v<Place, bool*>) return *place ? "true" : "false";
        if constexpr (std::is_same_v<Place, std::uint32_t*>) return std::to_string(*place);
        if constexpr (std::is_same_v<Place, Duration*>) return time_text(*place);
        if constexpr (std::is_same_v<Place, Ratio*>) return fmt::format("{}/{}", place->numerator, place->denominator);
        if constexpr (std::is_same_v<Place, std::uint64_t*>) {
          if (key.type == ValueType::kNumber) return std::to_string(*place);
          return in_units(*place, kByteUnits, "0B") + (key.type == ValueType::kRate ? "/s" : "");
        }
        if constexpr (std::is_same_v<Place, std::int64_t*>) {
          if (*place >= 0) return std::to_string(*place);
        }
        if constexpr (std::is_same_v<Place, std::optional<Duration>*>) {
          if (place->has_value()) return time_text(**place);
        }
        if constexpr (std::is_same_v<Place, std::optional<Ratio>*>) {
          if (place->has_value()) return fmt::format("{}/{}", (*place)->numerator, (*place)->denominator);
        }
        if constexpr (std::is_same_v<Place, DurationRange*>) {
          if (place->least == place->most) return time_text(place->least);
          return time_text(place->least) + ".." + time_text(place->most);
        }
        return std::nullopt;
      },
      key.value);
}

std::string type_text(const Key& key) {
  switch (key.type) {
    case ValueType::kText:
      return "text";
    case ValueType::kNumber:
      return "whole number";
    case ValueType::kFlag:
      return "true or false";
    case ValueType::kTime:
      return "time such as 30s, 10ms or 200us";
    case ValueType::kTimeRange:
      return "time or range of times such as 200us..2ms";
    case ValueType::kBytes:
      return "size such as 141GB";
    case ValueType::kRate:
      return "rate such as 25GB/s";
    case ValueType::kRatio:
      return "ratio such as 1/500";
    case ValueType::kDecimal:
      return "decimal number such as 0.9 or 3e-6";
    case ValueType::kChoice:
      return fmt::format("one of {}", fmt::join(std::get<ChoiceRef>(key.value).names, ", "));
    case ValueType::kFields:
      return "mapping of fields to values";
    case ValueType::kMapping:
      return "mapping";
    case ValueType::kList:
      return "list";
  }
  return {};
}

}  // namespace areal::config
