// Asked by a node around every input and effect: what becomes of it. Absent in production.
#pragma once
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/record.h"
#include "engine/base/time.h"

namespace areal::port {

// An input or effect on its way, in erased form. A hook may change `record` and `body`; the node then carries on with the
// changed values, and the trace shows them with the rule's id.
struct Passing {
  NodeId node{};
  SlotId slot{};
  bool is_input = false;
  std::uint32_t rule = 0;  // Set by the hook that changed or made it.
  Duration delay{};          // Set by the hook: how much later it happens.
  Record record{};
  Record body{};
};

class FaultHook {
 public:
  virtual ~FaultHook() = default;
  // Appends to `out` what happens instead of `passing`: itself, nothing, itself twice, or something else.
  virtual void on_pass(const Passing& passing, std::vector<Passing>& out) = 0;
};

}  // namespace areal::port
