// The simulated room as an implementation of the ports: a real World whose nodes only remember.
#pragma once
#include "tests/contract/port_harness.h"

namespace areal::test {

std::unique_ptr<PortHarness> make_simulated_room();

}  // namespace areal::test
