// `areal-sim doctor`: whether this machine can run everything, one line a check.
#include <fmt/core.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "engine/base/text.h"
#include "engine/config/scenario_yaml.h"
#include "replay/record/compress.h"
#include "replay/record/database.h"
#include "sim/cli/command.h"
#include "sim/cli/recording.h"
#include "sim/explore/run.h"

namespace areal::cli {
namespace {

enum class Grade : std::uint8_t { kOk, kWarn, kFail };

struct Check {
  std::string_view name;
  Grade grade = Grade::kOk;
  std::string text;
};

constexpr std::uint64_t kFilesWanted = 1024;               // Sockets of 256 real ranks, four each.
constexpr std::uint64_t kFilesNeeded = 64;                 // One recording, its journal, a report, and room.
constexpr std::uint64_t kSharedWanted = 64 * 1024 * 1024;  // Real ranks of one machine pass tensors through it.
constexpr std::uint64_t kDiskWanted = 256 * 1024 * 1024;   // A long recording.
constexpr double kWorldWantedS = 1.0;                      // A tenth of a second on a slow core, and much room.

constexpr const char* kWorld =
    "scenario:\n"
    "  name: doctor\n"
    "  why: The smallest world that publishes a version.\n"
    "  model: tiny\n"
    "  train: {backend: 'megatron:d1t1', step_time: 1s}\n"
    "  rollout: {backend: 'sglang:d1t1', batch: 1, samples: 1, max_new_tokens: 16, concurrent: 1, staleness: 1}\n"
    "  work: {updates: 1}\n"
    "  expect: {verdict: held, end: completed, published: 1}\n";

Check check_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {"open files", Grade::kWarn, std::strerror(errno)};
  if (limit.rlim_cur == RLIM_INFINITY) return {"open files", Grade::kOk, "no limit"};
  const std::string text = fmt::format("limit {}", count_text(limit.rlim_cur));
  if (limit.rlim_cur < kFilesNeeded) return {"open files", Grade::kFail, text + "; ulimit -n 1024"};
  if (limit.rlim_cur < kFilesWanted)
    return {"open files", Grade::kWarn, text + "; real ranks want 1,024: ulimit -n 1024"};
  return {"open files", Grade::kOk, text};
}

Check check_space(std::string_view name, const char* path, std::uint64_t wanted) {
  struct statvfs space{};
  if (statvfs(path, &space) != 0) return {name, Grade::kWarn, fmt::format("{}: {}", path, std::strerror(errno))};
  const std::uint64_t free = std::uint64_t{space.f_bavail} * space.f_frsize;
  const std::string text = fmt::format("{} free", bytes_text(free));
  if (free >= wanted) return {name, Grade::kOk, text};
  return {name, Grade::kWarn, fmt::format("{}; {} are wanted", text, bytes_text(wanted))};
}

Check check_writable() {
  char name[] = "areal-sim-doctor-XXXXXX";
  const int file = mkstemp(name);
  if (file < 0) {
    return {"this folder", Grade::kFail,
            fmt::format("cannot be written ({}): recordings need another place", std::strerror(errno))};
  }
  const bool written = write(file, name, sizeof name) == static_cast<ssize_t>(sizeof name);
  const int error = errno;
  close(file);
  unlink(name);
  if (!written) return {"this folder", Grade::kFail, fmt::format("cannot be written: {}", std::strerror(error))};
  return {"this folder", Grade::kOk, "can be written"};
}

Check check_cores() {
  cpu_set_t allowed{};
  const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  const long cores = known ? CPU_COUNT(&allowed) : sysconf(_SC_NPROCESSORS_ONLN);
  if (cores < 1) return {"cores", Grade::kWarn, "their number is not known"};
  return {"cores", cores < 2 ? Grade::kWarn : Grade::kOk, fmt::format("{}; --jobs {} uses all of them", cores, cores)};
}

// Builds a tiny room and runs it twice.
Check check_world() {
  const auto read = config::read_scenario(kWorld, "doctor");
  if (!read.scenario) return {"a tiny world", Grade::kFail, config::refusal_text("doctor", read.problems)};
  const auto begin = std::chrono::steady_clock::now();
  auto room = sim::build_room(*read.scenario, {});
  if (!room) return {"a tiny world", Grade::kFail, room.error().detail};
  sim::RunSettings settings;
  settings.room = *room;
  settings.seed = 1;
  const auto run = sim::run_once(settings, nullptr);
  const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto again = sim::run_once(settings, nullptr);
  if (!run || !again) return {"a tiny world", Grade::kFail, (run ? again : run).error().detail};
  if (run->digest != again->digest) return {"a tiny world", Grade::kFail, "two runs of one seed gave two digests"};
  const std::string unmet = sim::unmet_expectation(read.scenario->expect, *run, *(*room)->setup);
  if (!unmet.empty()) return {"a tiny world", Grade::kFail, unmet};
  const std::string text = fmt::format("built and run in {:.0f} ms, {} events, digest {}", took_s * 1e3,
                                       count_text(run->events), to_hex(run->digest));
  return {"a tiny world", took_s > kWorldWantedS ? Grade::kWarn : Grade::kOk, text};
}

void print(const Check& check) {
  static constexpr std::array<std::string_view, 3> kWords{"ok", "warn", "FAIL"};
  fmt::print("{:<5} {:<13} {}\n", kWords[static_cast<std::size_t>(check.grade)], check.name, check.text);
  std::fflush(stdout);
}

}  // namespace

int command_doctor(const Arguments& /*arguments*/) {
  bool fails = false;
  const auto say = [&fails](const Check& check) {
    print(check);
    fails = fails || check.grade == Grade::kFail;
  };
  say({"program", Grade::kOk, program_version()});
  say({"libraries", Grade::kOk, fmt::format("sqlite {}, zstd {}", record::sqlite_version(), record::zstd_version())});
  say(check_cores());
  say(check_files());
  say(check_space("/dev/shm", "/dev/shm", kSharedWanted));
  say(check_writable());
  say(check_space("disk", ".", kDiskWanted));
  say(check_world());
  fmt::print("{}\n", fails ? "something must be changed" : "everything can run");
  return fails ? 1 : 0;
}

}  // namespace areal::cli
