#include "sim/fault/fault_kinds.h"

namespace areal::sim {

void add_fault_kinds(KindTable& kinds) { kinds.add<FaultApplied, FaultSkipped, Healed>(); }

port::TraceEvent fault_event(const FaultNotice& notice, std::uint64_t seq, std::uint64_t cause, Instant at) {
  port::TraceEvent event;
  event.seq = seq;
  event.cause = cause;
  event.at = at;
  event.node = notice.node;
  event.what = port::TraceWhat::kFault;
  event.record = notice.record;
  return event;
}

}  // namespace areal::sim
