// `areal-sim merge OUT.db PART.db...`: the recordings of single processes as one recording of their run, judged.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "engine/base/text.h"
#include "replay/analyse/merge.h"
#include "sim/check/judge.h"
#include "sim/cli/command.h"
#include "sim/cli/open_recording.h"
#include "sim/cli/recording.h"

namespace areal::cli {
namespace {

constexpr std::size_t kMostViolations = 10;

// Records and judges what it hears.
class JudgedRecording final : public port::TraceSink {
 public:
  JudgedRecording(record::Recorder& recorder, const sim::SetupPtr& setup)
      : recorder_(recorder), judges_(sim::make_judges(setup)) {}

  void on_event(const port::TraceEvent& event) override {
    recorder_.on_event(event);
    judges_.on_event(event, violations_);
    last_ = event;
    if (event.body.kind == port::VersionPublished::kKind && event.what == port::TraceWhat::kEffect) ++published_;
    if (event.body.kind != port::RunEnded::kKind || event.what != port::TraceWhat::kEffect) return;
    dispatch_record<port::RunEnded>(event.body, [this](const port::RunEnded& ended) { ended_ = ended; });
  }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override { recorder_.on_state(node, slot, digest); }
  void on_stream(std::uint32_t stream, std::string_view name) override { recorder_.on_stream(stream, name); }
  void on_decision(const port::Decision& decision) override { recorder_.on_decision(decision); }

  // `is_whole`: nothing is missing that could have been there. `has_gaps`: what a killed process did last is missing,
  // and a violation may be no more than that. Violations are kept in any case.
  sim::RunResult conclude(bool is_whole, bool has_gaps) {
    sim::RunResult result;
    judges_.at_end(ended_.has_value() && is_whole, violations_);
    if (!ended_ || !is_whole) result.verdict = config::Verdict::kInconclusive;
    if (ended_ && is_whole && ended_->end != port::RunEnd::kCompleted) result.verdict = config::Verdict::kLiveness;
    for (const sim::Violation& violation : violations_.all()) {
      const bool safety = violation.level == sim::InvariantClass::kSafety;
      if (safety) result.verdict = config::Verdict::kSafety;
      if (!safety && result.verdict == config::Verdict::kHeld) result.verdict = config::Verdict::kLiveness;
    }
    if (has_gaps && !violations_.empty()) result.verdict = config::Verdict::kInconclusive;
    result.end = ended_;
    result.events = last_.seq;
    result.ended_at = last_.at;
    result.published = published_;
    result.violations = violations_;
    return result;
  }

 private:
  record::Recorder& recorder_;
  sim::Judges judges_;
  sim::Violations violations_;
  port::TraceEvent last_;
  std::uint64_t published_ = 0;
  std::optional<port::RunEnded> ended_;
};

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

void print_violations(const sim::RunResult& result, bool has_gaps) {
  const auto all = result.violations.all();
  for (const sim::Violation& violation : all.first(std::min(all.size(), kMostViolations))) {
    fmt::print("violation  {} at event {}: {}\n", sim::info_of(violation.invariant).name, violation.seq,
               violation.message);
  }
  if (all.size() > kMostViolations) fmt::print("           and {} more\n", all.size() - kMostViolations);
  if (!all.empty() && has_gaps) fmt::print("           they may be no more than what is missing\n");
}

int write_merged(const std::string& out, const analyse::MergeHead& head, const std::vector<analyse::NamedReader>& parts,
                 const sim::Room& room) {
  auto recorder = record::Recorder::open(out, head.info, head.nodes, room.kinds);
  if (!recorder) return refuse(fmt::format("{}: {}", out, recorder.error().detail));
  JudgedRecording judged(**recorder, room.setup);
  const auto merged = analyse::merge(head, parts, judged);
  if (!merged) {
    fmt::print(stderr, "areal-sim: {}\n", merged.error().detail);
    recorder->reset();
    for (const char* ending : {"", "-wal", "-shm"}) std::filesystem::remove(out + ending);
    return merged.error().code == Errc::kInvalid ? kBadUsage : kDamaged;
  }
  fmt::print("{}   merge {}   scenario {}   seed {:#x}\n{}", program_version(), out, head.info.scenario_name,
             head.info.seed, analyse::to_text(*merged));
  const bool is_whole = merged->is_whole();
  const sim::RunResult result = judged.conclude(is_whole, merged->lost_causes > 0);
  print_violations(result, merged->lost_causes > 0);
  const Status closed = is_whole ? close_recording(**recorder, result) : leave_open(**recorder, result);
  if (!closed) {
    fmt::print(stderr, "areal-sim: {}: the recording is incomplete: {}\n", out, closed.error().detail);
    return kInternalError;
  }
  static constexpr std::array<std::string_view, 4> kVerdicts{"HELD", "FAIL", "INCONCLUSIVE", "STUCK"};
  fmt::print("{}  {} versions published{}\n", kVerdicts[static_cast<std::size_t>(result.verdict)], result.published,
             is_whole ? "" : "; truncated: what is missing cannot be judged");
  return is_whole ? sim::exit_code(result.verdict) : kTruncated;
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
  return write_merged(out, *head, parts, *loaded->room);
}

}  // namespace areal::cli
