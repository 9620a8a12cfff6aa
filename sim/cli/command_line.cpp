// Picks the subcommand; no exception leaves.
#include <fmt/core.h>

#include <exception>
#include <new>

#include "sim/cli/command.h"

namespace areal::cli {
namespace {

int dispatch(const Arguments& arguments) {
  if (arguments.command == "run") return arguments.seeds ? command_seeds(arguments) : command_run(arguments);
  if (arguments.command == "real") return command_real(arguments);
  if (arguments.command == "replay") return command_replay(arguments);
  if (arguments.command == "merge") return command_merge(arguments);
  if (arguments.command == "diff") return command_diff(arguments);
  if (arguments.command == "dump") return command_dump(arguments);
  if (arguments.command == "catalogue") return command_catalogue(arguments);
  if (arguments.command == "schema") return command_schema(arguments);
  if (arguments.command == "doctor") return command_doctor(arguments);
  fmt::print(stderr, "areal-sim: unknown subcommand '{}'\n", arguments.command);
  return kBadUsage;
}

int failed(const char* what) {
  fmt::print(stderr, "areal-sim: internal error: {}\n", what);
  return kInternalError;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  try {
    const ParsedArguments parsed = parse_arguments(argc, argv);
    if (!parsed.arguments) return parsed.exit_code;
    return dispatch(*parsed.arguments);
  } catch (const std::bad_alloc&) {
    return failed("out of memory");
  } catch (const std::exception& error) {
    return failed(error.what());
  } catch (...) {
    return failed("an exception of unknown type");
  }
}

}  // namespace areal::cli
