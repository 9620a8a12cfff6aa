// `areal-sim replay RUN.db`: runs a recording again, from its seed or its decisions, and compares every line.
#include <fmt/core.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/port/trace_digest.h"
#include "replay/analyse/replayer.h"
#include "sim/cli/command.h"
#include "sim/cli/loaded.h"
#include "sim/cli/recording.h"

namespace areal::cli {
namespace {

class Comparing final : public sim::RunObserver {
 public:
  explicit Comparing(const record::RunReader& reader) : comparer(reader) {}
  void on_event(const port::TraceEvent& event) override { comparer.on_event(event); }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override { comparer.on_state(node, slot, digest); }
  void on_stream(std::uint32_t stream, std::string_view name) override { comparer.on_stream(stream, name); }
  void on_decision(const port::Decision& decision) override { comparer.on_decision(decision); }
  bool keep_going(const sim::World& /*world*/) override { return !comparer.difference(); }

  analyse::ReplayComparer comparer;
};

Result<sim::RecordedDecisions> recorded_decisions(const record::RunReader& reader) {
  sim::RecordedDecisions recorded;
  recorded.streams.assign(reader.streams().begin(), reader.streams().end());
  for (std::uint32_t stream = 0; stream < recorded.streams.size(); ++stream) {
    auto decisions = reader.decisions(stream);
    if (!decisions) return decisions.error();
    recorded.decisions.insert(recorded.decisions.end(), decisions->begin(), decisions->end());
  }
  return recorded;
}

sim::Profile profile_in(const record::RunInfo& info) {
  for (const auto& [key, value] : info.overrides) {
    if (key == "profile") return profile_of(value);
  }
  return sim::Profile::kCalm;
}

// Real processes record which backend carried their payload.
bool is_of_real_processes(const record::RunInfo& info) {
  return std::ranges::any_of(info.overrides, [](const auto& override) { return override.first == "backend"; });
}

}  // namespace

int command_replay(const Arguments& arguments) {
  if (arguments.all_nodes || !arguments.node.empty()) return command_replay_nodes(arguments);
  const std::string& file = arguments.files.front();
  auto opened = record::RunReader::open(file);
  if (!opened) {
    fmt::print(stderr, "{}: {}\n", file, opened.error().detail);
    return opened.error().code == Errc::kIo ? kBadUsage : kDamaged;
  }
  const record::RunReader& reader = **opened;
  if (is_of_real_processes(reader.info())) {
    fmt::print(stderr,
               "{}: a recording of real processes, which no seed gives again: replay each node from what it received, "
               "with --all-nodes or --node NAME\n",
               file);
    return kBadUsage;
  }
  const bool truncated = reader.state() == record::RecordingState::kTruncated;
  const auto loaded = load_text(reader.info().scenario_text, file, half_of(reader.info().half));
  if (!loaded) return kBadUsage;
  sim::RunSettings settings = settings_of(*loaded, reader.info().seed, profile_in(reader.info()));
  // A run that was stopped is repeated up to where it was stopped.
  const bool stopped = truncated || reader.verdict() == "inconclusive";
  if (stopped && !reader.blocks().empty()) settings.until_event = reader.blocks().back().last_seq;
  if (arguments.from_decisions) {
    auto decisions = recorded_decisions(reader);
    if (!decisions) {
      fmt::print(stderr, "{}: {}\n", file, decisions.error().detail);
      return kDamaged;
    }
    settings.decisions = std::move(*decisions);
  }
  fmt::print("{}   replay {}   scenario {}   seed {:#x}   {}{}\n", program_version(), file, reader.info().scenario_name,
             reader.info().seed, arguments.from_decisions ? "from decisions" : "from the seed",
             truncated ? "   (truncated recording)" : "");
  Comparing comparing(reader);
  auto result = sim::run_once(settings, &comparing);
  if (!result) {
    fmt::print(stderr, "{}: {}\n", file, result.error().detail);
    return kInternalError;
  }
  if (!truncated) comparing.comparer.finish();
  if (!comparing.comparer.error().empty()) {
    fmt::print(stderr, "{}: {}\n", file, comparing.comparer.error());
    return kDamaged;
  }
  if (!result->misfit.empty()) fmt::print("a recorded decision no longer fits: {}\n", result->misfit);
  if (const auto& difference = comparing.comparer.difference()) {
    fmt::print("DIFFERENT at event {}\n  recorded  {}\n  replayed  {}\n", difference->seq, difference->recorded,
               difference->replayed);
    return kNondeterministic;
  }
  fmt::print("EQUAL  {} lines compared, {} events   verdict {}   digest {}\n",
             count_text(comparing.comparer.compared()), count_text(result->events),
             truncated ? "unknown (truncated)" : reader.verdict(),
             to_hex(truncated ? reader.digest() : result->digest));
  return truncated ? 2 : 0;
}

}  // namespace areal::cli
