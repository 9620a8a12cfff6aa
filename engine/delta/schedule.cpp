// Rounds of halving; two ranks meet in the round in which their highest differing bit is cut.
#include "engine/delta/schedule.h"

#include <fmt/format.h>

#include <bit>

#include "engine/base/check.h"

namespace areal::delta {
namespace {

std::uint32_t rounds_of(std::uint32_t world) { return static_cast<std::uint32_t>(std::bit_width(world)) - 1; }

}  // namespace

Status check_schedule_world(std::uint32_t world) {
  if (std::has_single_bit(world)) return Unit{};
  return Error{Errc::kInvalid, fmt::format("recursive halving needs a power of two of ranks, not {}", world)};
}

Result<std::vector<Meeting>> recursive_schedule(std::uint32_t world, std::uint32_t rank) {
  AREAL_TRY(check_schedule_world(world));
  if (rank >= world) return Error{Errc::kInvalid, fmt::format("rank {} is outside a world of {}", rank, world)};
  std::vector<Meeting> meetings;
  meetings.reserve(std::size_t{2} * (world - 1));
  for (std::uint32_t round = 0; round < rounds_of(world); ++round) {
    const std::uint32_t half = (world >> round) / 2;
    const bool is_first_half = (rank & half) == 0;
    const std::uint32_t block = rank & ~(2 * half - 1);
    const std::uint32_t first_peer = is_first_half ? block + half : block;
    for (std::uint32_t phase = 0; phase < 2; ++phase) {
      for (std::uint32_t peer = first_peer; peer < first_peer + half; ++peer) {
        meetings.push_back({peer, round, phase, is_first_half == (phase == 0)});
      }
    }
  }
  return meetings;
}

std::uint32_t schedule_slots(std::uint32_t world) {
  AREAL_CHECK(std::has_single_bit(world));
  return 2 * rounds_of(world);
}

std::uint32_t schedule_slot(std::uint32_t world, std::uint32_t sender, std::uint32_t receiver) {
  AREAL_CHECK(std::has_single_bit(world));
  AREAL_CHECK(sender < world);
  AREAL_CHECK(receiver < world);
  AREAL_CHECK(sender != receiver);
  const std::uint32_t round = rounds_of(world) - static_cast<std::uint32_t>(std::bit_width(sender ^ receiver));
  return 2 * round + (sender < receiver ? 0 : 1);
}

}  // namespace areal::delta
