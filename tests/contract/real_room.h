// Real processes as an implementation of the ports: one process a seat, with the ports that areal-node has.
#pragma once
#include "tests/contract/port_harness.h"

namespace areal::test {

// REQUIRES: the main() of this program runs run_seat() when it is started as areal-node is.
std::unique_ptr<PortHarness> make_real_room();

}  // namespace areal::test
