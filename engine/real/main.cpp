// areal-node: one process of a real run. Started by `areal-sim real` and by guards, not by hand.
#include <fmt/core.h>

#include <charconv>
#include <string_view>

#include "engine/real/node_program.h"

namespace {

constexpr const char* kUsage =
    "areal-node --run FOLDER --node NAME [--incarnation N] [--port N] [--notes]\n"
    "  One process of a real run, started by `areal-sim real` and by the guards of the run.\n"
    "  --run FOLDER     the run's folder: run.txt, scenario.yaml, secret\n"
    "  --node NAME      which node of the scenario this is\n"
    "  --incarnation N  how often it was started, from 1\n"
    "  --port N         to listen on; 0: any free one\n"
    "  --notes          print one line a note\n"
    "  Ends at SIGTERM. Exit: 0 ended when told to, 64 usage or scenario, 70 the system refused something.\n";

bool take_number(std::string_view text, auto& value) {
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc{} && rest == text.data() + text.size();
}

}  // namespace

int main(int argc, char** argv) {
  areal::real::NodeProgramOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const bool has_value = i + 1 < argc;
    bool fits = true;
    if (option == "--help") return fmt::print("{}", kUsage), 0;
    if (option == "--notes") {
      options.prints_notes = true;
      continue;
    }
    if (option == "--run" && has_value) {
      options.folder = argv[++i];
    } else if (option == "--node" && has_value) {
      options.node = argv[++i];
    } else if (option == "--incarnation" && has_value) {
      fits = take_number(argv[++i], options.incarnation);
    } else if (option == "--port" && has_value) {
      fits = take_number(argv[++i], options.port);
    } else {
      fits = false;
    }
    if (!fits) return fmt::print(stderr, "areal-node: '{}' is no option, or its value is none\n{}", option, kUsage), 64;
  }
  if (options.folder.empty() || options.node.empty()) return fmt::print(stderr, "{}", kUsage), 64;
  return areal::real::run_node(options);
}
