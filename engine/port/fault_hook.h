// Asked by a node around every input and effect: what becomes of it. Absent in production.
#pragma once
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/record.h"
#include "engine/base/time.h"

namespace areal::port {

// An input or effect on its way, in erased form. What the hook puts out instead may have other words, happen later, at
// another node, or be dropped; the trace shows what happened (drops too), with the rule's id. What was put off or made
// by a hook does not pass it again; effects that a made input leads to do.
struct Passing {
  NodeId node{};
  SlotId slot{};
  bool is_input = false;
  std::uint32_t rule = 0;  // Set by the hook that changed or made it.
  Duration delay{};        // Set by the hook: how much later, from now, it happens.
  bool dropped = false;    // Set by the hook: it does not happen.
  Record record{};
  Record body{};
};

// Not thread-safe: only the node's loop calls it.
class FaultHook {
 public:
  virtual ~FaultHook() = default;
  // True: on_pass() would put out just what it is given, and nothing changes if it is not asked. Asked first, of every
  // input and effect, since most concern no rule.
  [[nodiscard]] virtual bool leaves_alone(bool is_input, KindId record, KindId body) const {
    return static_cast<void>(is_input), static_cast<void>(record), static_cast<void>(body), false;
  }
  // Appends to `out` what happens instead of `passing`: itself, itself twice, itself marked as dropped, something else.
  virtual void on_pass(const Passing& passing, std::vector<Passing>& out) = 0;
};

}  // namespace areal::port
