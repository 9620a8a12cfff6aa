// Every port contract on every implementation of the ports that there is.
#include "tests/contract/port_contract.h"

#include "tests/contract/simulated_room.h"

namespace areal::test {
namespace {

const Implementation kImplementations[] = {{"simulated_room", make_simulated_room}};

std::string name_of(const testing::TestParamInfo<Implementation>& info) { return info.param.name; }

}  // namespace

INSTANTIATE_TEST_SUITE_P(Port, ClockContract, testing::ValuesIn(kImplementations), name_of);
INSTANTIATE_TEST_SUITE_P(Port, ExecutorContract, testing::ValuesIn(kImplementations), name_of);
INSTANTIATE_TEST_SUITE_P(Port, MessageContract, testing::ValuesIn(kImplementations), name_of);
INSTANTIATE_TEST_SUITE_P(Port, GroupContract, testing::ValuesIn(kImplementations), name_of);
INSTANTIATE_TEST_SUITE_P(Port, MemoryContract, testing::ValuesIn(kImplementations), name_of);
INSTANTIATE_TEST_SUITE_P(Port, StoreContract, testing::ValuesIn(kImplementations), name_of);
INSTANTIATE_TEST_SUITE_P(Port, ProcessContract, testing::ValuesIn(kImplementations), name_of);
INSTANTIATE_TEST_SUITE_P(Port, ComputeContract, testing::ValuesIn(kImplementations), name_of);

}  // namespace areal::test
