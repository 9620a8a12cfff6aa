#include "engine/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

namespace areal {
namespace {

struct Unit64 {
  std::string_view name;
  std::uint64_t scale;
};

// Prints value / scale with up to `digits` decimals, cut, without trailing zeros.
std::string decimal(std::uint64_t value, std::uint64_t scale, int digits) {
  std::string text = std::to_string(value / scale);
  std::uint64_t rest = value % scale;
  std::string fraction;
  for (int i = 0; i < digits; ++i) {
    rest *= 10;
    fraction += static_cast<char>('0' + rest / scale);
    rest %= scale;
  }
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  return fraction.empty() ? text : text + "." + fraction;
}

std::optional<std::uint64_t> parse_scaled(std::string_view text, std::span<const Unit64> units) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc{}) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(parsed.ptr - text.data()));
  const auto place = std::ranges::find(units, unit, &Unit64::name);
  if (place == units.end()) return std::nullopt;
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(number, place->scale, &product)) return std::nullopt;
  return product;
}

}  // namespace

std::string to_text(Duration duration) {
  const bool is_negative = duration.ns < 0;
  const auto word = static_cast<std::uint64_t>(duration.ns);
  const std::uint64_t ns = is_negative ? 0 - word : word;  // Also of the least value, which has no opposite.
  const std::string sign = is_negative ? "-" : "";
  if (ns < 1'000) return sign + std::to_string(ns) + " ns";
  if (ns < 1'000'000) return sign + decimal(ns, 1'000, 1) + " us";
  if (ns < 1'000'000'000) return sign + decimal(ns, 1'000'000, 2) + " ms";
  return sign + decimal(ns, 1'000'000'000, 3) + " s";
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array<Unit64, 4> kUnits{
      {{"TB", 1'000'000'000'000}, {"GB", 1'000'000'000}, {"MB", 1'000'000}, {"kB", 1'000}}};
  for (const Unit64& unit : kUnits) {
    if (bytes >= unit.scale) return decimal(bytes, unit.scale, 1) + " " + std::string(unit.name);
  }
  return std::to_string(bytes) + " B";
}

std::string count_text(std::uint64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::optional<Duration> parse_duration(std::string_view text) {
  static constexpr std::array<Unit64, 6> kUnits{{{"ns", 1},
                                                 {"us", 1'000},
                                                 {"ms", 1'000'000},
                                                 {"s", 1'000'000'000},
                                                 {"m", 60'000'000'000},
                                                 {"h", 3'600'000'000'000}}};
  const auto ns = parse_scaled(text, kUnits);
  if (!ns || *ns > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  return Duration{static_cast<std::int64_t>(*ns)};
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  static constexpr std::array<Unit64, 9> kUnits{{{"B", 1},
                                                 {"kB", 1'000},
                                                 {"MB", 1'000'000},
                                                 {"GB", 1'000'000'000},
                                                 {"TB", 1'000'000'000'000},
                                                 {"KiB", 1ULL << 10},
                                                 {"MiB", 1ULL << 20},
                                                 {"GiB", 1ULL << 30},
                                                 {"TiB", 1ULL << 40}}};
  return parse_scaled(text, kUnits);
}

bool fits_pattern(std::string_view pattern, std::string_view text) {
  // On a mismatch the last star takes one more character: no recursion.
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t kLongestWord = 80;
  if (word.size() > kLongestWord) return {};
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    // A word of which every letter would change is no typo.
    if (distance < least && distance < candidate.size()) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest.empty() ? std::string() : "; did you mean '" + std::string(nearest) + "'?";
}

}  // namespace areal
