// `areal-sim real SCENARIO.yaml`: a scenario in real processes, recorded, merged and judged.
#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>

#include "engine/base/rng.h"
#include "engine/real/host/run_folder.h"
#include "sim/cli/command.h"
#include "sim/cli/interrupt.h"
#include "sim/cli/loaded.h"
#include "sim/cli/real_run.h"
#include "sim/cli/recording.h"
#include "sim/cli/story.h"

namespace areal::cli {
namespace {

// Beside this program.
std::filesystem::path node_program() {
  std::error_code problem;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", problem);
  return self.parent_path() / "areal-node";
}

std::filesystem::path folder_of_run() {
  return std::filesystem::temp_directory_path() / fmt::format("areal-run-{}", getpid());
}

}  // namespace

int command_real(const Arguments& arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // Also in a pipe, lines are seen when they happen.
  const std::string& file = arguments.files.front();
  const auto loaded = load_scenario(file, arguments.sets, Half::kNone);
  if (!loaded) return kBadUsage;
  if (!loaded->half.empty()) {
    fmt::print(stderr,
               "{} names a known defect; only the simulator puts defects in. Run it without `real`, or leave "
               "scenario.defect and with_defect out.\n",
               file);
    return kBadUsage;
  }
  if (!std::filesystem::exists(node_program())) {
    fmt::print(stderr, "areal-sim: {} is missing; it is built where Gloo is installed (scripts/setup.sh)\n",
               node_program().string());
    return kInternalError;
  }
  const std::uint64_t seed = arguments.seed.value_or(mix_words(static_cast<std::uint64_t>(getpid()), 1) & 0xFFFFFFFF);
  fmt::print("{}   {}   seed {:#x}   real processes over {}\n", program_version(), file, seed, arguments.backend);
  std::fflush(stdout);
  Story story(*loaded->room, arguments.quiet ? nullptr : stdout);
  story.print_head();
  RealRunSettings settings;
  settings.room = loaded->room.get();
  settings.seed = seed;
  settings.program = node_program();
  settings.folder = folder_of_run();
  settings.notes = &story;
  settings.interrupted = interrupted;
  watch_interrupts();
  const auto run = run_real(settings);
  if (!run) {
    fmt::print(stderr, "areal-sim: {}\n", run.error().detail);
    return kInternalError;
  }
  if (!run->failure.empty()) fmt::print("\nSTOPPED  {}\n", run->failure);
  Arguments merge = arguments;
  const bool keeps = !arguments.record.empty();
  const std::string merged = keeps ? arguments.record : (settings.folder / "merged.db").string();
  merge.files = {merged, run->recordings.string()};
  const int judged = command_merge(merge);
  const bool keep_parts = arguments.keep;
  if (keep_parts) {
    fmt::print("      processes' own recordings and logs in {}\n", settings.folder.string());
  } else if (const auto folder = host::RunFolder::open(settings.folder)) {
    static_cast<void>(folder->remove());
  }
  if (run->interrupted) return kInterrupted;
  if (!run->failure.empty()) return judged == 0 ? 3 : judged;
  return judged;
}

}  // namespace areal::cli
