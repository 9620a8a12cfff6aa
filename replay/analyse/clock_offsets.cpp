#include "replay/analyse/clock_offsets.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace areal::analyse {

namespace {

template <class Way>
bool is_before(const Way& way, std::size_t from, std::size_t to) {
  return way.from != from ? way.from < from : way.to < to;
}

}  // namespace

void ClockOffsets::add(std::size_t from, Instant sent, std::size_t to, Instant received) {
  AREAL_CHECK(from != to);
  const Duration took = received - sent;
  const auto place =
      std::partition_point(ways_.begin(), ways_.end(), [&](const Way& way) { return is_before(way, from, to); });
  if (place == ways_.end() || place->from != from || place->to != to) {
    ways_.insert(place, {from, to, took, 1});
    return;
  }
  place->least = std::min(place->least, took);
  ++place->count;
}

const ClockOffsets::Way* ClockOffsets::find(std::size_t from, std::size_t to) const {
  const auto place =
      std::partition_point(ways_.begin(), ways_.end(), [&](const Way& way) { return is_before(way, from, to); });
  return place != ways_.end() && place->from == from && place->to == to ? &*place : nullptr;
}

std::vector<ClockOffset> ClockOffsets::estimates() const {
  std::vector<ClockOffset> out;
  for (const Way& there : ways_) {
    if (there.from > there.to) continue;
    const Way* back = find(there.to, there.from);
    if (back == nullptr) continue;
    out.push_back({.left = there.from,
                   .right = there.to,
                   .offset = {(there.least.ns - back->least.ns) / 2},
                   .error = {(there.least.ns + back->least.ns + 1) / 2},
                   .there = there.count,
                   .back = back->count});
  }
  return out;
}

std::string to_text(const ClockOffset& offset, const std::vector<std::string>& names) {
  const bool is_ahead = offset.offset.ns >= 0;
  const Duration size{is_ahead ? offset.offset.ns : -offset.offset.ns};
  const std::string within =
      offset.error.ns > 0 ? "to within " + areal::to_text(offset.error) : "and one of them did not run evenly";
  return fmt::format("{} is {} {} {}, {} ({} messages there, {} back)", names[offset.right], areal::to_text(size),
                     is_ahead ? "ahead of" : "behind", names[offset.left], within, count_text(offset.there),
                     count_text(offset.back));
}

}  // namespace areal::analyse
