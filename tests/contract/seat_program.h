// One real node of a contract's room: the ports of a process of a run, asked from outside instead of by protocols.
#pragma once
#include <filesystem>

namespace areal::test {

// Where the seats of a run connect to.
std::filesystem::path seats_of(const std::filesystem::path& folder);

// The whole life of a process that was started as areal-node is. Ends when the harness does, or by a signal.
int run_seat(int argc, char** argv);

}  // namespace areal::test
