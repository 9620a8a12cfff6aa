// What recording costs a run: a row for each event against packed blocks, the digest alone, and reading back.
//
// Counters: ns/event is items_per_second turned round; bytes/event is the size of the file (or of the blocks).
#include <benchmark/benchmark.h>

#include <filesystem>
#include <variant>
#include <vector>

#include "engine/port/trace_digest.h"
#include "replay/analyse/trace_lines.h"
#include "replay/record/database.h"
#include "replay/record/run_reader.h"
#include "tests/replay/synthetic_trace.h"

namespace areal::testing {
namespace {

constexpr int kSteps = 20'000;  // Three events, a state and one or two decisions each.

class Keeper : public port::TraceSink {
 public:
  void on_event(const port::TraceEvent& event) override { lines.emplace_back(event), ++events; }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override {
    lines.emplace_back(analyse::StateLine{node, slot, digest});
  }
  void on_stream(std::uint32_t stream, std::string_view name) override {
    lines.emplace_back(analyse::StreamLine{stream, std::string(name)});
  }
  void on_decision(const port::Decision& decision) override { lines.emplace_back(decision); }

  std::vector<analyse::TraceLine> lines;
  std::int64_t events = 0;
};

const Keeper& trace() {
  static const Keeper keeper = [] {
    Keeper made;
    SyntheticRun run(made);
    for (int i = 0; i < kSteps; ++i) run.step();
    return made;
  }();
  return keeper;
}

void tell(port::TraceSink& sink) {
  for (const analyse::TraceLine& line : trace().lines) {
    if (const auto* event = std::get_if<port::TraceEvent>(&line)) {
      sink.on_event(*event);
    } else if (const auto* state = std::get_if<analyse::StateLine>(&line)) {
      sink.on_state(state->node, state->slot, state->digest);
    } else if (const auto* stream = std::get_if<analyse::StreamLine>(&line)) {
      sink.on_stream(stream->stream, stream->name);
    } else {
      sink.on_decision(std::get<port::Decision>(line));
    }
  }
}

void report(benchmark::State& state, double bytes) {
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * trace().events);
  state.counters["bytes/event"] = bytes / static_cast<double>(trace().events);
}

void digest_only(benchmark::State& state) {
  for (auto _ : state) {
    port::TraceDigest digest;
    tell(digest);
    benchmark::DoNotOptimize(digest.digest());
  }
  report(state, 0);
}
BENCHMARK(digest_only);

// The blocks alone: no digest, no file.
void packed_blocks(benchmark::State& state) {
  record::Compressor compressor;
  std::size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    record::BlockEncoder encoder;
    for (const analyse::TraceLine& line : trace().lines) {
      if (encoder.events() == 4096) {
        bytes += compressor.pack(encoder.bytes())->size();
        encoder.clear();
      }
      std::visit(
          [&](const auto& value) {
            using Line = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<Line, port::TraceEvent>) encoder.on_event(value);
            if constexpr (std::is_same_v<Line, analyse::StateLine>) {
              encoder.on_state(value.node, value.slot, value.digest);
            }
            if constexpr (std::is_same_v<Line, port::Decision>) encoder.on_decision(value);
          },
          line);
    }
    bytes += compressor.pack(encoder.bytes())->size();
  }
  report(state, static_cast<double>(bytes));
}
BENCHMARK(packed_blocks);

void recorder_whole(benchmark::State& state) {
  const ScratchFile file("bench.db");
  for (auto _ : state) {
    const auto recorder = open_recorder(file.path());
    tell(*recorder);
    AREAL_CHECK(recorder->finish({.verdict = "held", .counts = {}}).has_value());
  }
  report(state, static_cast<double>(std::filesystem::file_size(file.path())));
}
BENCHMARK(recorder_whole)->Unit(benchmark::kMillisecond);

// The plain way, for comparison: a row for each event and each state, in transactions of 10,000 rows.
void row_per_event(benchmark::State& state) {
  const ScratchFile file("bench_rows.db");
  for (auto _ : state) {
    std::filesystem::remove(file.path());
    auto database = record::Database::create(file.path());
    AREAL_CHECK(database
                    ->run("PRAGMA page_size=16384;PRAGMA journal_mode=WAL;PRAGMA synchronous=OFF;"
                          "PRAGMA locking_mode=EXCLUSIVE;CREATE TABLE event(seq INTEGER PRIMARY KEY, cause INTEGER, "
                          "lamport INTEGER, at INTEGER, node INTEGER, slot INTEGER, what INTEGER, words BLOB, "
                          "state BLOB) STRICT;BEGIN")
                    .has_value());
    auto insert = database->prepare("INSERT INTO event VALUES(?,?,?,?,?,?,?,?,?)");
    std::vector<std::uint8_t> state_bytes(16);
    std::uint64_t rows = 0;
    for (const analyse::TraceLine& line : trace().lines) {
      const auto* event = std::get_if<port::TraceEvent>(&line);
      if (event == nullptr) continue;
      const std::span<const std::uint8_t> words(reinterpret_cast<const std::uint8_t*>(event->record.words.data()),
                                                event->record.view().size_bytes());
      const bool has_state = event->what == port::TraceWhat::kInput;
      AREAL_CHECK(insert
                      ->run({record::number_cell(event->seq), record::number_cell(event->cause),
                             record::number_cell(event->lamport), event->at.ns, record::number_cell(event->node.value),
                             record::number_cell(event->slot.value), record::number_cell(to_word(event->what)), words,
                             has_state ? record::Cell(std::span<const std::uint8_t>(state_bytes))
                                       : record::Cell(std::monostate{})})
                      .has_value());
      if (++rows % 10'000 == 0) AREAL_CHECK(database->run("COMMIT;BEGIN").has_value());
    }
    AREAL_CHECK(database->run("COMMIT;PRAGMA wal_checkpoint(TRUNCATE)").has_value());
  }
  report(state, static_cast<double>(std::filesystem::file_size(file.path())));
}
BENCHMARK(row_per_event)->Unit(benchmark::kMillisecond);

void open_and_read_back(benchmark::State& state) {
  const ScratchFile file("bench_read.db");
  {
    const auto recorder = open_recorder(file.path());
    tell(*recorder);
    AREAL_CHECK(recorder->finish({.verdict = "held", .counts = {}}).has_value());
  }
  for (auto _ : state) {
    const auto reader = record::RunReader::open(file.path());
    port::TraceDigest digest;
    AREAL_CHECK((*reader)->read_all(digest).has_value());
    benchmark::DoNotOptimize(digest.digest());
  }
  report(state, static_cast<double>(std::filesystem::file_size(file.path())));
}
BENCHMARK(open_and_read_back)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace areal::testing

BENCHMARK_MAIN();
