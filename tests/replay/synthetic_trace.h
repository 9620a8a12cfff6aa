// A made-up run that uses every kind of trace line, for tests and benchmarks of recordings.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/rng.h"
#include "engine/port/notes.h"
#include "engine/port/trace_sink.h"
#include "engine/port/types.h"
#include "replay/record/recorder.h"

namespace areal::testing {

struct CutLink {
  NodeId from;
  NodeId to;
  AREAL_RECORD(0x0F01, "cut_link", from, to)
};

inline const KindTable& synthetic_kinds() {
  static const KindTable kinds = [] {
    KindTable table;
    port::add_kinds(table);
    table.add<CutLink>();
    return table;
  }();
  return kinds;
}

inline std::vector<record::NodeRow> synthetic_nodes() {
  return {{.id = {1}, .name = "gateway", .role = "gateway", .host = {1}, .slots = {"pair", "update"}},
          {.id = {2}, .name = "e0", .role = "engine", .host = {2}, .slots = {"receiver", "server"}},
          {.id = {3}, .name = "e1", .role = "engine", .host = {3}, .slots = {"receiver", "server"}}};
}

inline record::RunInfo synthetic_info() {
  return {.scenario_name = "made_up",
          .scenario_text = "name: made_up\nsteps: 3\n",
          .half = "with_defect",
          .program = "areal-sim 0.1.0",
          .seed = 0xFFFF'0000'1234'5678,
          .overrides = {{"faults.cut", "off"}}};
}

// Speaks to a sink as a simulator would.
class SyntheticRun {
 public:
  explicit SyntheticRun(port::TraceSink& sink, std::uint64_t seed = 1) : sink_(sink), rng_(seed) {
    sink_.on_stream(0, "net.delay");
    sink_.on_stream(1, "order");
  }

  template <RecordType T>
  std::uint64_t input(NodeId node, SlotId slot, const T& what, const Record& body = {}) {
    return say(node, slot, port::TraceWhat::kInput, to_record(what), body);
  }
  template <RecordType T>
  std::uint64_t effect(NodeId node, SlotId slot, const T& what, const Record& body = {}) {
    return say(node, slot, port::TraceWhat::kEffect, to_record(what), body);
  }
  template <RecordType T>
  std::uint64_t note(NodeId node, SlotId slot, const T& what) {
    return say(node, slot, port::TraceWhat::kEffect, to_record(port::Note{}), to_record(what));
  }
  std::uint64_t fault(NodeId from, NodeId to) {
    return say(from, {}, port::TraceWhat::kFault, to_record(CutLink{from, to}), {});
  }
  void state(NodeId node, SlotId slot) {
    const std::uint64_t high = rng_.draw_u64();
    const std::uint64_t low = rng_.draw_u64();
    sink_.on_state(node, slot, {high, low});
  }
  void decide(std::uint32_t stream, std::uint64_t bound) {
    const bool acts = rng_.draw_chance(1, 16);
    const std::uint64_t chosen = acts ? rng_.draw_below(bound) : 0;
    sink_.on_decision({stream, ++ordinals_[stream], bound, chosen});
  }

  // One step of a node: a timer, two effects, a state, a decision. Four lines and a half on average, three events.
  void step() {
    const NodeId node{1 + rng_.draw_below(3)};
    const SlotId slot{rng_.draw_below(2)};
    at_.ns += static_cast<std::int64_t>(rng_.draw_below(100'000));
    cause_ = input(node, slot, port::TimerFired{TimerId{rng_.draw_below(4)}});
    effect(node, slot, port::ArmTimer{TimerId{1}, 10_ms});
    effect(node, slot,
           port::Send{.to = {1 + rng_.draw_below(3)},
                      .to_slot = {0},
                      .kind = port::MessageKind::kOneWay,
                      .request = {},
                      .body = {}},
           to_record(port::TimerFired{TimerId{seq_}}));
    state(node, slot);
    decide(0, 16);
    if (rng_.draw_chance(1, 2)) decide(1, 3);
  }

  // One update with every typed kind in it, also things that never end.
  void update(Version version) {
    const NodeId gateway{1};
    const NodeId engine{2};
    const Digest128 digest{.high = version, .low = ~version};
    at_.ns += 1'000'000;
    cause_ =
        note(gateway, {1}, port::UpdateStarted{1, version, 1, port::UpdateMode::kFull, port::FullReason::kNotSeeded});
    fault(gateway, engine);
    note(gateway, {1}, port::UpdateEnded{1, version, 1, port::Outcome::kPeerGone, engine});
    note(gateway, {1}, port::UpdateStarted{1, version, 2, port::UpdateMode::kFull, port::FullReason::kRetry});
    effect(engine, {0}, port::JoinGroup{GroupId{version}, port::Backend::kNccl, 1, 2, 29'500});
    input(engine, {0}, port::GroupJoined{GroupId{version}, port::Outcome::kOk});
    effect(engine, {0},
           port::PostBatch{.group = {version},
                           .batch = {1},
                           .kind = port::BatchKind::kMin,
                           .tag = 7,
                           .version = version,
                           .buffer = {},
                           .value = 5,
                           .count = 6});
    effect(engine, {0},
           port::PostBatch{.group = {version}, .batch = {2}, .kind = port::BatchKind::kReceive, .buffer = {}});
    at_.ns += 500;
    input(engine, {0}, port::BatchDone{GroupId{version}, BatchId{1}, port::Outcome::kOk, {}, 3, 4});
    note(engine, {0}, port::Receipt{port::ReceiptKind::kWeights, version, port::Role::kEngine, 12, 1, digest});
    note(engine, {1}, port::LeaseChanged{HostId{2}, 29'500, port::LeaseState::kLeased, engine, 1});
    note(engine, {1}, port::LeaseChanged{HostId{2}, 29'500, port::LeaseState::kBound, engine, 1});
    note(engine, {1},
         port::SegmentStored{SampleId{version}, EngineId{0}, version - 1, version, 128, port::SegmentEnd::kLength,
                             digest});
    note(gateway, {1}, port::UpdateEnded{1, version, 2, port::Outcome::kOk, {}});
    note(gateway, {1}, port::VersionPublished{1, version, 2, port::UpdateMode::kFull, port::FullReason::kRetry, 4096});
    note(gateway, {1}, port::AnchorSet{1, version, 2, port::FullReason::kRetry});
    note(engine, {1}, port::LeaseChanged{HostId{2}, 29'500, port::LeaseState::kReleased, {}, 0});
    note(engine, {1},
         port::LeaseChanged{HostId{2}, static_cast<std::uint16_t>(29'501 + version), port::LeaseState::kLeased, engine,
                            2});
    state(engine, {0});
  }

  [[nodiscard]] std::uint64_t seq() const { return seq_; }

 private:
  std::uint64_t say(NodeId node, SlotId slot, port::TraceWhat what, const Record& record, const Record& body) {
    sink_.on_event({.seq = ++seq_,
                    .cause = cause_,
                    .lamport = seq_ / 2 + node.value,
                    .at = at_,
                    .node = node,
                    .incarnation = 1,
                    .slot = slot,
                    .what = what,
                    .rule = seq_ % 50 == 0 ? 3U : 0U,
                    .record = record,
                    .body = body});
    return seq_;
  }

  port::TraceSink& sink_;
  Rng rng_;
  std::uint64_t seq_ = 0;
  std::uint64_t cause_ = 0;
  Instant at_;
  std::array<std::uint64_t, 2> ordinals_{};
};

// A name for a file of this test alone; the files go when it does.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& name)
      : path_(
            (std::filesystem::temp_directory_path() / ("areal_" + std::to_string(::getpid()) + "_" + name)).string()) {}
  ~ScratchFile() {
    for (const char* ending : {"", "-journal", "-wal", "-shm", ".meta.json"}) {
      std::error_code error;
      std::filesystem::remove(path_ + ending, error);
    }
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::unique_ptr<record::Recorder> open_recorder(const std::string& path,
                                                       const record::RecorderOptions& options = {}) {
  auto recorder = record::Recorder::open(path, synthetic_info(), synthetic_nodes(), synthetic_kinds(), options);
  AREAL_CHECK(recorder.has_value());
  return std::move(*recorder);
}

// A finished recording of `steps` steps and one update in the middle; gives its digest.
inline Digest128 record_synthetic(const std::string& path, int steps, const record::RecorderOptions& options = {},
                                  std::uint64_t seed = 1) {
  const auto recorder = open_recorder(path, options);
  SyntheticRun run(*recorder, seed);
  for (int i = 0; i < steps; ++i) {
    run.step();
    if (i == steps / 2) run.update(1);
  }
  recorder->add_violation({"INV-1", "safety", run.seq(), NodeId{2}, "a label is not what was served"});
  const std::array<std::uint64_t, 3> words{1, 2, ~std::uint64_t{0}};
  recorder->add_snapshot(run.seq(), words);
  AREAL_CHECK(recorder->finish({.verdict = "violated", .counts = {{"updates", 1}}}).has_value());
  return recorder->digest();
}

// Keeps every line it hears, as text that shows every field.
class LineCollector : public port::TraceSink {
 public:
  void on_event(const port::TraceEvent& event) override { add(port::TraceWords(event)), events.push_back(event); }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override {
    add(port::TraceWords(node, slot, digest));
  }
  void on_stream(std::uint32_t stream, std::string_view name) override { add(port::TraceWords(stream, name)); }
  void on_decision(const port::Decision& decision) override {
    add(port::TraceWords(decision)), decisions.push_back(decision);
  }

  std::vector<std::vector<std::uint64_t>> lines;
  std::vector<port::TraceEvent> events;
  std::vector<port::Decision> decisions;

 private:
  void add(const port::TraceWords& words) { lines.emplace_back(words.view().begin(), words.view().end()); }
};

}  // namespace areal::testing
