// Every port contract on the simulated room.
#include "tests/contract/port_contract.h"

#include "tests/contract/simulated_room.h"

namespace areal::test {

AREAL_PORT_CONTRACTS(Port, (Implementation{"simulated_room", make_simulated_room}));

}  // namespace areal::test
