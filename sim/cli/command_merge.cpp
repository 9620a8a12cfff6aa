// `areal-sim merge OUT.db PART.db...`: the recordings of single processes as one recording of their run, judged.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "engine/base/text.h"
#include "replay/analyse/merge.h"
#include "sim/cli/command.h"
#include "sim/cli/judged_recording.h"
#include "sim/cli/loaded.h"
#include "sim/cli/open_recording.h"
#include "sim/cli/recording.h"
#include "sim/cli/seed_run.h"
#include "sim/cli/summary.h"

namespace areal::cli {
namespace {

// Every word that is a folder stands for the recordings in it, by name.
std::vector<std::string> part_files(const Arguments& arguments) {
  const std::filesystem::path out(arguments.files.front());
  std::vector<std::string> files;
  for (std::size_t i = 1; i < arguments.files.size(); ++i) {
    if (!std::filesystem::is_directory(arguments.files[i])) {
      files.push_back(arguments.files[i]);
      continue;
    }
    const auto first = static_cast<std::ptrdiff_t>(files.size());
    for (const auto& entry : std::filesystem::directory_iterator(arguments.files[i])) {
      std::error_code error;
      const bool is_out = std::filesystem::equivalent(entry.path(), out, error);
      if (entry.path().extension() == ".db" && !is_out) files.push_back(entry.path().string());
    }
    std::stable_sort(files.begin() + first, files.end());
  }
  return files;
}

// A kind that a part knows is the one that this program knows under its number.
bool knows_kinds(const KindTable& kinds, const record::StoredKinds& stored) {
  const auto is_field = [](const FieldInfo& left, const FieldInfo& right) {
    return left.name == right.name && left.type == right.type && std::ranges::equal(left.names, right.names);
  };
  return std::ranges::all_of(kinds.all(), [&](const KindInfo* kind) {
    const KindInfo* other = stored.find(kind->id);
    return other == nullptr || (other->name == kind->name && std::ranges::equal(other->fields, kind->fields, is_field));
  });
}

int refuse(const std::string& text) {
  fmt::print(stderr, "areal-sim: {}\n", text);
  return kBadUsage;
}

// Prints what came of it and returns the exit code.
int tell(const Loaded& loaded, const sim::RunResult& result, const JudgedRecording& judged, const MergeGaps& gaps,
         const analyse::MergeHead& head) {
  print_summary(*loaded.room, result, judged.totals(),
                fmt::format("time {}   events {}", to_text(Duration{result.ended_at.ns}), count_text(result.events)));
  const std::string unmet = sim::unmet_expectation(loaded.expect, result, *loaded.room->setup);
  if (!gaps.is_whole) fmt::print("      truncated: what is missing cannot be judged\n");
  if (!unmet.empty()) fmt::print("      expectation not met: {}\n", unmet);
  const SeedEnd end = end_of(loaded, result);
  if (gaps.is_whole && (end == SeedEnd::kHeld || end == SeedEnd::kUnmet)) return end == SeedEnd::kHeld ? 0 : 1;
  print_failure(loaded, result, judged.causes(), head.info.seed);
  if (gaps.has_gaps && !result.violations.all().empty()) {
    fmt::print("  the violations may be no more than what a killed process did last, which is missing\n");
  }
  return gaps.is_whole ? sim::exit_code(result.verdict) : kTruncated;
}

int write_merged(const std::string& out, const analyse::MergeHead& head, const std::vector<analyse::NamedReader>& parts,
                 const Loaded& loaded) {
  auto recorder = record::Recorder::open(out, head.info, head.nodes, loaded.room->kinds);
  if (!recorder) return refuse(fmt::format("{}: {}", out, recorder.error().detail));
  JudgedRecording judged(**recorder, *loaded.room);
  const auto merged = analyse::merge(head, parts, judged);
  if (!merged) {
    fmt::print(stderr, "areal-sim: {}\n", merged.error().detail);
    recorder->reset();
    for (const char* ending : {"", "-wal", "-shm"}) std::filesystem::remove(out + ending);
    return merged.error().code == Errc::kInvalid ? kBadUsage : kDamaged;
  }
  fmt::print("{}   merge {}   scenario {}   seed {:#x}\n{}", program_version(), out, head.info.scenario_name,
             head.info.seed, analyse::to_text(*merged));
  const MergeGaps gaps{merged->is_whole(), merged->lost_causes > 0};
  const sim::RunResult result = judged.conclude(gaps);
  const Status closed = gaps.is_whole ? close_recording(**recorder, result) : leave_open(**recorder, result);
  if (!closed) {
    fmt::print(stderr, "areal-sim: {}: the recording is incomplete: {}\n", out, closed.error().detail);
    return kInternalError;
  }
  return tell(loaded, result, judged, gaps, head);
}

}  // namespace

int command_merge(const Arguments& arguments) {
  const std::string& out = arguments.files.front();
  if (!out.ends_with(".db")) return refuse(fmt::format("{}: the recording to write comes first and ends in .db", out));
  const std::vector<std::string> files = part_files(arguments);
  if (files.empty()) return refuse(fmt::format("{} holds no recording", arguments.files[1]));
  int code = 0;
  std::vector<std::unique_ptr<record::RunReader>> readers;
  std::vector<analyse::NamedReader> parts;
  for (const std::string& file : files) {
    std::error_code error;
    if (std::filesystem::equivalent(file, out, error)) return refuse(out + ": would be replaced while it is read");
    readers.push_back(open_recording_file(file, &code));
    if (readers.back() != nullptr) parts.push_back({readers.back().get(), file});
  }
  if (code != 0) return code;
  const auto head = analyse::read_merge_head(parts);
  if (!head) return refuse(head.error().detail);
  const auto loaded = load_text(head->info.scenario_text, files.front(), half_of(head->info.half));
  if (!loaded) return kBadUsage;
  if (!knows_kinds(loaded->room->kinds, parts.front().reader->kinds())) {
    return refuse(files.front() + ": written by a program that numbers kinds of events otherwise");
  }
  return write_merged(out, *head, parts, *loaded);
}

}  // namespace areal::cli
