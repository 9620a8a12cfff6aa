// Estimates how far the clocks of processes are apart, from when messages left one and reached another.
//
// As NTP does it (RFC 5905, 8): between two processes the least time from sending to receiving one way is the way's
// delay plus the offset, the other way another delay minus the offset. Half of their difference is the offset, if the
// delays are equal; it is wrong by at most half of their sum. So what is within the error may be no offset at all.
// Plain values; not thread-safe.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/time.h"

namespace areal::analyse {

// Of a pair that sent both ways. Processes are numbers that the caller gives.
struct ClockOffset {
  std::size_t left = 0;
  std::size_t right = 0;    // left < right.
  Duration offset{};        // What the right clock shows more than the left one.
  Duration error{};         // At most so far off; 0 or less: a clock did not run evenly.
  std::uint64_t there = 0;  // Messages from left to right, and back.
  std::uint64_t back = 0;

  // Whether the clocks are apart, whatever the delays were.
  [[nodiscard]] bool is_certain() const { return offset.ns > error.ns || -offset.ns > error.ns; }
};

class ClockOffsets {
 public:
  // Something that `from` did at `sent` by its clock led to something at `to` by that one's. REQUIRES: from != to.
  void add(std::size_t from, Instant sent, std::size_t to, Instant received);

  // Ascending by left, right.
  [[nodiscard]] std::vector<ClockOffset> estimates() const;

 private:
  struct Way {
    std::size_t from = 0;
    std::size_t to = 0;
    Duration least{};
    std::uint64_t count = 0;
  };
  [[nodiscard]] const Way* find(std::size_t from, std::size_t to) const;

  std::vector<Way> ways_;  // Ascending by from, to.
};

// "e0 #1 is 5 s ahead of gateway #1, to within 1.2 ms (40 messages there, 31 back)"; `names` by number of a process.
std::string to_text(const ClockOffset& offset, const std::vector<std::string>& names);

}  // namespace areal::analyse
