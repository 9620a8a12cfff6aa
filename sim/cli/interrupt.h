// Whether the user asked a command to end, by Ctrl-C or a polite kill.
#pragma once

namespace areal::cli {

// From here on SIGINT and SIGTERM are remembered instead of ending the program.
void watch_interrupts();
[[nodiscard]] bool interrupted();

}  // namespace areal::cli
