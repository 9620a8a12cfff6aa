// Every port contract on real processes; also the program of those processes.
#include <gtest/gtest.h>

#include <string_view>

#include "tests/contract/port_contract.h"
#include "tests/contract/real_room.h"
#include "tests/contract/seat_program.h"

namespace areal::test {

AREAL_PORT_CONTRACTS(Real, (Implementation{"real_room", make_real_room}));

}  // namespace areal::test

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--run") return areal::test::run_seat(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
