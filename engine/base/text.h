// How times and sizes are printed and read; whole numbers with units, never locale.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/time.h"

namespace areal {

// "41.207 s", "4860 s", "350 us": for people.
std::string to_text(Duration duration);
// "61.1 GB" (powers of 1000): for people.
std::string bytes_text(std::uint64_t bytes);
// "97,402".
std::string count_text(std::uint64_t count);

// "30s", "10ms", "200us", "5ns", "2m", "1h": a whole number and a unit, nothing else.
std::optional<Duration> parse_duration(std::string_view text);
// "1GiB", "64MiB", "25GB", "512B".
std::optional<std::uint64_t> parse_bytes(std::string_view text);

// Whether `text` as a whole fits `pattern`, in which '*' stands for any run of characters, also none. Takes time in
// proportion to the product of both lengths at most.
bool fits_pattern(std::string_view pattern, std::string_view text);

// How many single-character edits lead from a to b.
std::size_t edit_distance(std::string_view a, std::string_view b);

// "; did you mean 'x'?" for the nearest of `known` if one is near enough to be a typo, else nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);
inline std::string did_you_mean(std::string_view word, std::initializer_list<std::string_view> known) {
  return did_you_mean(word, std::span(known.begin(), known.size()));
}

}  // namespace areal
