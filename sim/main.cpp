// areal-sim: runs scenarios in a simulated machine room, and replays and compares their recordings.
#include "sim/cli/command.h"

int main(int argc, char** argv) { return areal::cli::run_command_line(argc, argv); }
