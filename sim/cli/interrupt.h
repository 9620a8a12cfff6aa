// Whether the user asked a command to end: by Ctrl-C, a polite kill, or because nobody reads its output any more.
#pragma once

namespace areal::cli {

// From here on SIGINT, SIGTERM and SIGPIPE are remembered instead of ending the program.
void watch_interrupts();
[[nodiscard]] bool interrupted();

}  // namespace areal::cli
