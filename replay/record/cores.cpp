#include "replay/record/cores.h"

#include <sched.h>

namespace areal::record {

bool may_use_two_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  // More cores than the set has room for make the call fail.
  return ::sched_getaffinity(0, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) > 1;
}

}  // namespace areal::record
