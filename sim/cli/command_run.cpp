// `areal-sim SCENARIO.yaml`: one run, told as a story, judged, and recorded if asked to.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "engine/base/rng.h"
#include "engine/base/text.h"
#include "replay/record/meta_file.h"
#include "sim/cli/command.h"
#include "sim/cli/failure.h"
#include "sim/cli/interrupt.h"
#include "sim/cli/judge_profile.h"
#include "sim/cli/output_json.h"
#include "sim/cli/output_junit.h"
#include "sim/cli/recording.h"
#include "sim/cli/seed_run.h"
#include "sim/cli/story.h"
#include "sim/cli/summary.h"
#include "sim/explore/listeners.h"

namespace areal::cli {
namespace {

// Listens until the user interrupts.
class UntilInterrupted final : public sim::Listeners {
 public:
  bool keep_going(const sim::World& /*world*/) override { return !interrupted(); }
};

// Runs it once more and says whether it came out the same, so that the command printed last was really run.
bool reproduces(const Loaded& loaded, const sim::RunSettings& settings, const sim::RunResult& result) {
  static_cast<void>(loaded);
  auto again = sim::run_once(settings, nullptr);
  return again && again->digest == result.digest && again->verdict == result.verdict;
}

bool set_until(sim::RunSettings& settings, const std::string& until) {
  if (until.empty()) return true;
  if (const auto time = parse_duration(until)) {
    settings.until = Instant{} + *time;
    return true;
  }
  char* end = nullptr;
  settings.until_event = std::strtoull(until.c_str(), &end, 10);
  return end != until.c_str() && *end == '\0' && settings.until_event > 0;
}

std::uint64_t fresh_seed() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return mix_words(static_cast<std::uint64_t>(now), static_cast<std::uint64_t>(getpid())) & 0xFFFFFFFF;
}

// A report to "-" has standard output for itself: everything that is for people goes to standard error from here on.
Arguments with_text_on_stderr(Arguments arguments) {
  if (arguments.json != "-" && arguments.junit != "-") return arguments;
  const std::string report = fmt::format("/dev/fd/{}", dup(STDOUT_FILENO));
  dup2(STDERR_FILENO, STDOUT_FILENO);
  if (arguments.json == "-") arguments.json = report;
  if (arguments.junit == "-") arguments.junit = report;
  return arguments;
}

bool finish_recording(record::Recorder& recorder, const Arguments& arguments, const sim::RunResult& result,
                      double wall_s) {
  const Status closed = close_recording(recorder, result);
  if (!closed) {
    fmt::print(stderr, "{}: the recording is incomplete: {}\n", arguments.record, closed.error().detail);
    return false;
  }
  static_cast<void>(record::write_meta(arguments.record, {{{"wall_seconds", fmt::format("{:.3f}", wall_s)},
                                                           {"scenario_file", arguments.files.front()}}}));
  fmt::print("      recording {}\n", arguments.record);
  return true;
}

int write_outputs(const Arguments& arguments, const Loaded& loaded, std::uint64_t seed, const sim::RunResult& result) {
  const std::string& scenario = arguments.files.front();
  if (!arguments.json.empty() && !write_json(arguments.json, {scenario, loaded.half, seed, loaded.room->setup, result}))
    return 1;
  if (!arguments.junit.empty() &&
      !write_junit(arguments.junit, {scenario, loaded.half, seed, loaded.room->setup, result}))
    return 1;
  return 0;
}

}  // namespace

int command_run(const Arguments& given) {
  const Arguments arguments = with_text_on_stderr(given);
  const std::string& file = arguments.files.front();
  const auto loaded = load_scenario(file, arguments.sets, arguments.half);
  if (!loaded) return kBadUsage;
  const std::uint64_t seed = arguments.seed.value_or(fresh_seed());
  sim::RunSettings settings = settings_of(*loaded, seed, arguments.profile);
  if (!set_until(settings, arguments.until)) {
    fmt::print(stderr, "--until {}: write a time (45s) or the number of an event\n", arguments.until);
    return kBadUsage;
  }
  fmt::print("{}   {}   seed {:#x}   profile {}{}\n", program_version(), file, seed, profile_name(arguments.profile),
             loaded->half.empty() ? "" : "   " + loaded->half);
  std::fflush(stdout);

  Story story(*loaded->room, arguments.quiet ? nullptr : stdout);
  CauseLog log;
  UntilInterrupted listeners;
  listeners.add(&story);
  listeners.add(&log);
  std::unique_ptr<record::Recorder> recorder;
  if (!arguments.record.empty()) {
    auto opened =
        sim::open_recording(arguments.record, {*loaded->room, seed, loaded->half, profile_name(arguments.profile)});
    if (!opened) {
      fmt::print(stderr, "{}: {}\n", arguments.record, opened.error().detail);
      return kBadUsage;
    }
    recorder = std::move(*opened);
    listeners.add(recorder.get());
  }
  watch_interrupts();
  story.print_head();
  JudgeProfile profile;
  if (arguments.profile_judges) settings.wrapper = &profile;
  const auto begin = std::chrono::steady_clock::now();
  auto run = sim::run_once(settings, &listeners);
  const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!run) {
    fmt::print(stderr, "{} has 1 problem; nothing was started.\n  {}\n", file, run.error().detail);
    return kBadUsage;
  }
  const sim::RunResult& result = *run;
  print_summary(*loaded->room, result, story.totals(),
                fmt::format("virtual {}   wall {:.3f} s   events {}   digest {}", to_text(Duration{result.ended_at.ns}),
                            wall_s, count_text(result.events), to_hex(result.digest)));
  if (arguments.profile_judges) fmt::print("{}", profile.table(wall_s));
  if (recorder != nullptr && !finish_recording(*recorder, arguments, result, wall_s)) return kInternalError;
  if (write_outputs(arguments, *loaded, seed, result) != 0) return kInternalError;
  if (interrupted()) return kInterrupted;
  const std::string unmet = sim::unmet_expectation(loaded->expect, result, *loaded->room->setup);
  if (!unmet.empty()) fmt::print("      expectation not met: {}\n", unmet);
  const SeedEnd end = end_of(*loaded, result);
  if (end == SeedEnd::kHeld || end == SeedEnd::kUnmet) return end == SeedEnd::kHeld ? 0 : 1;
  print_failure(*loaded, result, log, seed);
  const bool same = reproduces(*loaded, settings, result);
  fmt::print("  determinism  run again: {}\n", same ? "same verdict, digest equal" : "NOT THE SAME");
  fmt::print("reproduce: {}\n", reproduce_command(arguments, file, seed, loaded->half));
  return same ? sim::exit_code(result.verdict) : kNondeterministic;
}

}  // namespace areal::cli
