// Runs scenarios once each and prints their digests: the simulator's core without command line and real processes, so
// that a further compiler or optimisation level costs a small build.
//
//   core-digest SEED [--record FOLDER] SCENARIO.yaml...
//
// With --record each run is recorded to FOLDER/NAME.db, as `areal-sim --record` does, and the digest of all that the
// recording holds is printed too. Exit 0; 64 if a scenario cannot be read or a recording written, 1 if a run broke a
// promise.
#include <fmt/core.h>

#include <charconv>
#include <string_view>

#include "engine/config/scenario_yaml.h"
#include "replay/record/content_digest.h"
#include "replay/record/run_reader.h"
#include "sim/explore/listeners.h"
#include "sim/explore/recorded_run.h"

namespace {

using areal::record::Recorder;

// Closes the recording, opens it as a reader would, and gives the digest of its content.
areal::Result<std::string> content_of(std::unique_ptr<Recorder> recorder, const std::string& path,
                                      const areal::sim::RunResult& result) {
  AREAL_TRY(close_recording(*recorder, result));
  recorder.reset();
  const auto reader = areal::record::RunReader::open(path);
  if (!reader) return reader.error();
  return (*reader)->value(areal::record::kContentKey);
}

areal::Result<areal::sim::RunResult> run(const areal::sim::RunSettings& settings, const std::string& folder,
                                         std::string& content) {
  if (folder.empty()) return areal::sim::run_once(settings, nullptr);
  const std::string path = folder + "/" + settings.room->scenario.name + ".db";
  auto recorder = areal::sim::open_recording(path, {*settings.room, settings.seed, "", "calm"});
  if (!recorder) return recorder.error();
  areal::sim::Listeners observer({recorder->get()});
  auto result = areal::sim::run_once(settings, &observer);
  if (!result) return result;
  const auto digest = content_of(std::move(*recorder), path, *result);
  if (!digest) return digest.error();
  content = *digest;
  return result;
}

int run_file(const char* file, std::uint64_t seed, const std::string& folder) {
  const areal::config::ReadScenario read = areal::config::read_scenario_file(file);
  if (!read.scenario) {
    fmt::print(stderr, "{}\n", areal::config::refusal_text(file, read.problems));
    return 64;
  }
  auto room = areal::sim::build_room(*read.scenario, {});
  if (!room) {
    fmt::print(stderr, "{}: {}\n", file, room.error().detail);
    return 64;
  }
  areal::sim::RunSettings settings;
  settings.room = *room;
  settings.seed = seed;
  std::string content;
  const auto result = run(settings, folder, content);
  if (!result) {
    fmt::print(stderr, "{}: {}\n", file, result.error().detail);
    return 64;
  }
  fmt::print("{} digest {} events {}{}{}\n", read.scenario->name, areal::to_hex(result->digest), result->events,
             content.empty() ? "" : " recording ", content);
  return result->violations.empty() ? 0 : 1;
}

int usage() {
  fmt::print(stderr, "usage: core-digest SEED [--record FOLDER] SCENARIO.yaml...\n");
  return 64;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return usage();
  const std::string_view text = argv[1];
  std::uint64_t seed = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), seed).ec != std::errc{}) return 64;
  const bool records = std::string_view(argv[2]) == "--record";
  if (records && argc < 5) return usage();
  const std::string folder = records ? argv[3] : "";
  int status = 0;
  for (int i = records ? 4 : 2; i < argc; ++i) {
    if (const int one = run_file(argv[i], seed, folder); one != 0) status = one;
  }
  return status;
}
