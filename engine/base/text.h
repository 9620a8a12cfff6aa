// How times and sizes are printed and read; whole numbers with units, never locale.
#pragma once
#include <cstdint>
#include <optional>
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

// How many single-character edits lead from a to b; for "did you mean".
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace areal
