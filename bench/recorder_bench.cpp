// What recording costs and gives: rates and sizes against plain rows, cost within a running loop, replay, differences.
//
// Every ratio is of numbers from one run, taken in turns; each number is the median of five. --quick: little of
// everything, to see that it runs. --parts: time of the parts of the recorder, single-threaded.
#include <sqlite3.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/arguments.h"
#include "bench/phold.h"
#include "bench/samples.h"
#include "engine/port/trace_digest.h"
#include "replay/analyse/recording_diff.h"
#include "replay/analyse/replayer.h"
#include "replay/record/block_codec.h"
#include "replay/record/compress.h"
#include "tests/replay/synthetic_trace.h"

namespace areal::bench {
namespace {

using record::Writing;
using testing::ScratchFile;
using Ahead = record::BlockWords::Ahead;

struct Sizes {
  std::uint64_t record = 1'000'000;
  std::uint64_t loop = 4'000'000;
  std::uint64_t diff = 10'000'000;
  int samples = 5;
};

using Samples = std::vector<double>;

// One line of the table: what, the number, what it must be and what it aims at.
void row(const char* what, double value, const Samples& samples, double must, double aim, bool is_ceiling) {
  const auto meets = [&](double bound) { return is_ceiling ? value <= bound : value >= bound; };
  const char* verdict = meets(aim) ? "aim" : meets(must) ? "must" : "MISSED";
  std::printf("%-52s %8.2f   %8.2f to %-8.2f %s %6.2f  %6.2f   %s\n", what, value, spread_of(samples).least,
              spread_of(samples).most, is_ceiling ? "<=" : ">=", must, aim, verdict);
}

void row(const char* what, const Samples& samples, double must, double aim, bool is_ceiling) {
  row(what, spread_of(samples).median, samples, must, aim, is_ceiling);
}

double bytes_of(const std::string& path) { return static_cast<double>(std::filesystem::file_size(path)); }

std::unique_ptr<record::Recorder> open(const std::string& path, Writing writing) {
  return testing::open_recorder(path, {.writing = writing});
}

void finish(record::Recorder& recorder) { AREAL_CHECK(recorder.finish({.verdict = "held", .counts = {}}).has_value()); }

void record_events(const std::string& path, const std::vector<port::TraceEvent>& events, Writing writing) {
  const auto recorder = open(path, writing);
  for (const port::TraceEvent& event : events) recorder->on_event(event);
  finish(*recorder);
}

// Rows of six whole numbers, in transactions of 10,000, `rows` of them a statement.
class RowFile {
 public:
  RowFile(const std::string& path, int rows) : rows_(rows) {
    for (const char* ending : {"", "-wal", "-shm"}) std::filesystem::remove(path + ending);
    AREAL_CHECK(sqlite3_open(path.c_str(), &handle_) == SQLITE_OK);
    run("PRAGMA page_size=4096;PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;"
        "CREATE TABLE event(seq INTEGER PRIMARY KEY, at INTEGER, node INTEGER, kind INTEGER, a INTEGER, b INTEGER);"
        "BEGIN");
    std::string sql = "INSERT INTO event VALUES (?,?,?,?,?,?)";
    for (int i = 1; i < rows; ++i) sql += ",(?,?,?,?,?,?)";
    AREAL_CHECK(sqlite3_prepare_v2(handle_, sql.c_str(), -1, &insert_, nullptr) == SQLITE_OK);
  }
  void add(const port::TraceEvent& event) {
    int place = bound_ * 6;
    for (const std::uint64_t value : {event.seq, to_word(event.at), event.node.value, std::uint64_t{event.record.kind},
                                      event.record.words[0], event.record.words[1]}) {
      sqlite3_bind_int64(insert_, ++place, static_cast<sqlite3_int64>(value));
    }
    if (++bound_ < rows_) return;
    bound_ = 0;
    AREAL_CHECK(sqlite3_step(insert_) == SQLITE_DONE);
    sqlite3_reset(insert_);
    added_ += rows_;
    if (added_ < 10'000) return;
    added_ = 0;
    run("COMMIT;BEGIN");
  }
  void close() {
    run("COMMIT;PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite3_finalize(insert_);
    sqlite3_close(handle_);
  }

 private:
  void run(const char* sql) { AREAL_CHECK(sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) == SQLITE_OK); }

  sqlite3* handle_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  int rows_ = 1;
  int bound_ = 0;
  int added_ = 0;
};

void row_events(const std::string& path, const std::vector<port::TraceEvent>& events, int rows) {
  RowFile file(path, rows);
  for (const port::TraceEvent& event : events) file.add(event);
  file.close();
}

// B7: a given list of events to a file.
void bench_record(const Sizes& sizes) {
  std::vector<port::TraceEvent> events;
  events.reserve(sizes.record);
  Phold().run(sizes.record, [&](const port::TraceEvent& event) { events.push_back(event); });
  const ScratchFile packed("b7.db");
  const ScratchFile rows("b7_rows.db");
  Samples rate;
  Samples inline_rate;
  Samples of_rows;
  Samples of_many;
  Samples row_bytes;
  for (int i = 0; i < sizes.samples; ++i) {
    const double packed_s = seconds_of([&] { record_events(packed.path(), events, Writing::kAuto); });
    const double inline_s = seconds_of([&] { record_events(packed.path(), events, Writing::kInline); });
    const double many_s = seconds_of([&] { row_events(rows.path(), events, 125); });
    const double row_s = seconds_of([&] { row_events(rows.path(), events, 1); });
    const double count = static_cast<double>(events.size());
    rate.push_back(count / packed_s / 1e6);
    inline_rate.push_back(count / inline_s / 1e6);
    of_rows.push_back(row_s / packed_s);
    of_many.push_back(many_s / packed_s);
    row_bytes.push_back(bytes_of(packed.path()) / bytes_of(rows.path()));
  }
  const double bytes = bytes_of(packed.path()) / static_cast<double>(events.size());
  Samples bytes_each;
  bytes_each.push_back(bytes);
  std::printf("recorder: %.2f million events/s (%.2f to %.2f), inline %.2f\n", spread_of(rate).median,
              spread_of(rate).least, spread_of(rate).most, spread_of(inline_rate).median);
  row("B7 rate, times that of a row for each event", of_rows, 8, 14, false);
  row("B7 rate, times that of 125 rows a statement", of_many, 5, 9, false);
  row("B7 bytes an event, whole file", bytes_each, 15, 10, true);
  row("B7 bytes, of those of the rows", row_bytes, 0.5, 0.3, true);
}

// Calls `heard` for each event of a loop and gives the seconds it took.
template <class Heard>
double loop_seconds(std::uint64_t events, Heard&& heard) {
  Phold loop;
  return seconds_of([&] { loop.run(events, heard); });
}

double off_seconds(std::uint64_t events) {
  std::uint64_t sum = 0;
  const double took = loop_seconds(events, [&](const port::TraceEvent& event) { sum += event.record.words[1]; });
  AREAL_CHECK(sum != 0);
  return took;
}

double recorded_seconds(std::uint64_t events, const std::string& path, Writing writing) {
  const auto recorder = open(path, writing);
  Phold loop;
  return seconds_of([&] {
    loop.run(events, [&](const port::TraceEvent& event) { recorder->on_event(event); });
    finish(*recorder);
  });
}

double hashed_seconds(std::uint64_t events) {
  port::TraceDigest digest;
  return loop_seconds(events, [&](const port::TraceEvent& event) { digest.on_event(event); });
}

// The median of pairs: more than the loop alone, in per cent of the loop's best time before and after.
double over_percent(double with, double before, double after) { return (with / std::min(before, after) - 1) * 100; }

// B8: the same in a running loop, with a run of the bare loop before and after each.
void bench_loop(const Sizes& sizes) {
  const ScratchFile file("b8.db");
  const ScratchFile rows("b8_rows.db");
  Samples hash;
  Samples inline_chunks;
  Samples behind;
  Samples bare;
  for (int i = 0; i < sizes.samples; ++i) {
    double off = off_seconds(sizes.loop);
    const auto pair = [&](Samples& samples, double took) {
      const double again = off_seconds(sizes.loop);
      samples.push_back(over_percent(took, off, again));
      bare.push_back(static_cast<double>(sizes.loop) / again / 1e6);
      off = again;
    };
    pair(hash, hashed_seconds(sizes.loop));
    pair(inline_chunks, recorded_seconds(sizes.loop, file.path(), Writing::kInline));
    pair(behind, recorded_seconds(sizes.loop, file.path(), Writing::kBackground));
  }
  RowFile row_file(rows.path(), 1);
  const double off = off_seconds(sizes.record);
  const double row_s = loop_seconds(sizes.record, [&](const port::TraceEvent& event) { row_file.add(event); });
  row_file.close();
  std::printf("loop: %.1f million events/s bare; a row for each event +%.0f %%; digest alone +%.1f %% (%.1f to %.1f)\n",
              spread_of(bare).median, over_percent(row_s, off, off_seconds(sizes.record)), spread_of(hash).median,
              spread_of(hash).least, spread_of(hash).most);
  row("B8 recorded by a thread of its own, % more time", behind, 25, 8, true);
  row("B8 recorded inline, % more time", inline_chunks, 80, 35, true);
}

// B9: the loop again, every line compared with B8's recording; then with one bit flipped.
void bench_replay(const Sizes& sizes) {
  const ScratchFile file("b9.db");
  recorded_seconds(sizes.loop, file.path(), Writing::kAuto);
  const auto reader = record::RunReader::open(file.path());
  AREAL_CHECK(reader.has_value());
  Samples full;
  Samples alone;
  Samples hashed;
  Samples found;
  Rng rng(7);
  int exact = 0;
  for (int i = 0; i < sizes.samples; ++i) {
    const auto compared_seconds = [&](Ahead ahead, std::uint64_t flipped) {
      analyse::ReplayComparer comparer(**reader, ahead);
      Phold loop;
      const double took = seconds_of([&] {
        std::uint64_t left = sizes.loop;
        loop.run(left, [&](const port::TraceEvent& event) { comparer.on_event(event); }, flipped);
        comparer.finish();
      });
      AREAL_CHECK(comparer.error().empty());
      if (flipped == 0) AREAL_CHECK(!comparer.difference() && comparer.compared() == sizes.loop);
      if (flipped != 0 && comparer.difference() && comparer.difference()->seq == flipped) ++exact;
      return took;
    };
    const double before = off_seconds(sizes.loop);
    const double compared = compared_seconds(Ahead::kAuto, 0);
    const double after = off_seconds(sizes.loop);
    full.push_back(std::min(before, after) / compared);
    alone.push_back(std::min(before, after) / compared_seconds(Ahead::kNever, 0));
    hashed.push_back(std::min(before, after) / hashed_seconds(sizes.loop));
    const std::uint64_t flipped = 1 + rng.draw_below(sizes.loop);
    found.push_back(compared_seconds(Ahead::kAuto, flipped) / compared);
  }
  std::printf("replay with one core: %.2f of the loop's speed (%.2f to %.2f)\n", spread_of(alone).median,
              spread_of(alone).least, spread_of(alone).most);
  row("B9 replay, every line compared: of the loop's speed", full, 0.75, 0.90, false);
  row("B9 replay, digest compared: of the loop's speed", hashed, 0.95, 0.98, false);
  row("B9 replay that finds a flipped bit: of one replay", found, 1.1, 1.1, true);
  Samples all;
  all.push_back(exact);
  row("B9 flipped bits whose event was named", all, sizes.samples, sizes.samples, false);
}

// Two recordings that part at one event, from their names to the words about it.
void bench_diff(const Sizes& sizes) {
  const ScratchFile left("diff_left.db");
  const ScratchFile right("diff_right.db");
  const std::uint64_t flipped = sizes.diff * 7 / 11;
  for (const auto& [file, flip] : {std::pair{&left, std::uint64_t{0}}, std::pair{&right, flipped}}) {
    const auto recorder = open(file->path(), Writing::kAuto);
    Phold().run(sizes.diff, [&](const port::TraceEvent& event) { recorder->on_event(event); }, flip);
    finish(*recorder);
  }
  Samples took;
  Samples opened;
  for (int i = 0; i < sizes.samples; ++i) {
    took.push_back(seconds_of([&] {
      const auto a = record::RunReader::open(left.path());
      const auto b = record::RunReader::open(right.path());
      AREAL_CHECK(a.has_value() && b.has_value());
      opened.push_back(seconds_of([&] {
        const auto diff = analyse::diff_recordings(**a, **b);
        AREAL_CHECK(diff.has_value() && !diff->equal && diff->seq == flipped);
        AREAL_CHECK(diff->fields.size() == 1);
      }));
    }));
  }
  std::printf("diff: of this, after both were opened and checked: %.3f s\n", spread_of(opened).median);
  row("diff of two recordings (10 million events each), s", took, 2, 2, true);
}

// Times of the parts, for one thread.
void bench_parts(const Sizes& sizes) {
  std::vector<port::TraceEvent> events;
  Phold().run(sizes.record, [&](const port::TraceEvent& event) { events.push_back(event); });
  const double each = 1e9 / static_cast<double>(events.size());
  const auto part = [&](const char* what, const std::function<void()>& work) {
    Samples samples;
    for (int i = 0; i < sizes.samples; ++i) {
      samples.push_back(core_seconds_of(work) * each);
    }
    std::printf("%-52s %8.1f   %8.1f to %-8.1f ns/event\n", what, spread_of(samples).median, spread_of(samples).least,
                spread_of(samples).most);
  };
  part("digest", [&] {
    port::TraceDigest digest;
    for (const port::TraceEvent& event : events) digest.on_event(event);
    AREAL_CHECK(digest.digest() != Digest128{});
  });
  const auto encode = [&](bool packs) {
    record::BlockEncoder encoder;
    record::Compressor compressor;
    for (const port::TraceEvent& event : events) {
      encoder.on_event(event);
      if (encoder.events() < 4096) continue;
      const auto bytes = encoder.bytes();
      const std::size_t packable = encoder.packable_bytes();
      if (packs) AREAL_CHECK(compressor.pack(bytes.first(packable), bytes.subspan(packable)).has_value());
      encoder.clear();
    }
  };
  part("blocks, not packed", [&] { encode(false); });
  part("blocks, packed", [&] { encode(true); });
  const ScratchFile file("parts.db");
  part("recorder, inline", [&] { record_events(file.path(), events, Writing::kInline); });
  const auto reader = record::RunReader::open(file.path());
  port::TraceDigest digest;
  part("blocks read back", [&] {
    for (std::size_t i = 0; i < (*reader)->blocks().size(); ++i) {
      AREAL_CHECK((*reader)->read_block(i, digest).has_value());
    }
  });
}

}  // namespace
}  // namespace areal::bench

int main(int count, char** arguments) {
  areal::bench::Arguments wishes("recorder_bench", "What recording costs and gives; under two minutes.");
  wishes.flag("quick", "little of everything, to see that it runs").flag("parts", "time of the recorder's parts alone");
  if (const auto status = wishes.parse(count, arguments)) return *status;
  areal::bench::Sizes sizes;
  if (wishes.has("quick")) sizes = {20'000, 40'000, 60'000, 1};
  if (wishes.has("parts")) return areal::bench::bench_parts(sizes), 0;
  std::printf("%-52s %8s   %20s %8s  %6s\n", "", "median", "least to most", "must", "aim");
  areal::bench::bench_record(sizes);
  areal::bench::bench_loop(sizes);
  areal::bench::bench_replay(sizes);
  areal::bench::bench_diff(sizes);
}
