// What waits in the world's queue: plain values, so that a queued world can be copied and written down.
#pragma once
#include "engine/base/fields.h"
#include "engine/node/ports.h"
#include "engine/proto/erase.h"

namespace areal::sim {

struct WorldEvent {
  enum class What : std::uint8_t {
    kDeliver,      // `erased` is an input of (node, slot).
    kTimer,        // The same, and the timer is no longer armed.
    kPassed,       // `erased` passed the rules already: an input (is_input), or an effect to carry out.
    kProcessUp,    // The process `node` has started, with port `a`; operation `number` of starter `b`, incarnation `c`.
    kExitNoticed,  // `node`, a starter, learns from `erased` that a process of its own died.
    kDeathNoticed,  // Members of group `number` learn that member `node` died.
    kPairMoved,     // The payload from rank `a` to rank `b` of group `number`, their `c`-th batch, has arrived.
    kComputeEnds,   // Operation `number` of `node` ends; `a` 1: ranks of its engine are gone.
    kStop,          // The process `node` is told to end.
  };
  What what = What::kDeliver;
  NodeId node{};
  Incarnation incarnation = 0;  // Of the process it is meant for; 0: whichever runs then.
  SlotId slot{};
  node::Origin origin{};
  bool is_input = true;
  std::uint32_t rule = 0;
  std::uint64_t number = 0;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t c = 0;
  proto::Erased erased{};
  AREAL_FIELDS(what, node, incarnation, slot, origin, is_input, rule, number, a, b, c, erased)
};

}  // namespace areal::sim
