// Every port contract on real processes; also the program of those processes.
#include <gtest/gtest.h>

#include <string_view>

#include "tests/contract/port_contract.h"
#include "tests/contract/real_room.h"
#include "tests/contract/seat_program.h"

namespace areal::test {
namespace {

const Implementation real_room{"real_room", make_real_room};

std::string name_of(const testing::TestParamInfo<Implementation>& info) { return info.param.name; }

}  // namespace

INSTANTIATE_TEST_SUITE_P(Real, ClockContract, testing::Values(real_room), name_of);
INSTANTIATE_TEST_SUITE_P(Real, ExecutorContract, testing::Values(real_room), name_of);
INSTANTIATE_TEST_SUITE_P(Real, MessageContract, testing::Values(real_room), name_of);
INSTANTIATE_TEST_SUITE_P(Real, GroupContract, testing::Values(real_room), name_of);
INSTANTIATE_TEST_SUITE_P(Real, MemoryContract, testing::Values(real_room), name_of);
INSTANTIATE_TEST_SUITE_P(Real, StoreContract, testing::Values(real_room), name_of);
INSTANTIATE_TEST_SUITE_P(Real, ProcessContract, testing::Values(real_room), name_of);
INSTANTIATE_TEST_SUITE_P(Real, ComputeContract, testing::Values(real_room), name_of);

}  // namespace areal::test

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--run") return areal::test::run_seat(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
