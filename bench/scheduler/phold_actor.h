// What an actor of PHOLD does at an event; in C++17, for the peers' headers are no newer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/scheduler/draws.h"

namespace areal::bench {

struct PholdActor {
  Xorshift random;
  std::uint64_t seen = 0;
};

// What an event at `actor` leads to: the same in the peers' programs.
struct PholdNext {
  std::uint32_t actor = 0;
  std::int64_t after_ns = 0;
};
inline PholdNext phold_step(std::vector<PholdActor>& actors, std::uint32_t index, const ExpTable<>& delays) {
  PholdActor& actor = actors[index];
  ++actor.seen;
  const std::uint64_t word = actor.random.draw();
  PholdNext next;
  next.actor = index;
  if (word >> 62 == 0) next.actor = static_cast<std::uint32_t>(((word & 0xFFFFFFFF) * actors.size()) >> 32);
  next.after_ns = 1000 + delays.draw(actor.random);
  return next;
}

inline std::vector<PholdActor> make_phold(std::size_t count) {
  std::vector<PholdActor> actors;
  actors.reserve(count);
  for (std::size_t i = 0; i < count; ++i) actors.push_back({Xorshift(i + 1), 0});
  return actors;
}

}  // namespace areal::bench
