// `areal-sim schema`: the JSON Schema of scenario files, for editors.
#include <cstdio>

#include "engine/config/scenario_schema.h"
#include "sim/cli/command.h"
#include "sim/cli/run_output.h"

namespace areal::cli {

int command_schema(const Arguments& /*arguments*/) {
  std::string text = config::scenario_json_schema();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return write_report("-", text) ? 0 : kInternalError;
}

}  // namespace areal::cli
