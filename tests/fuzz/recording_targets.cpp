// Recordings that somebody hands us: event blocks, damaged files, and sound files whose rows make no sense.
#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <optional>

#include "engine/base/bytes.h"
#include "engine/base/check.h"
#include "replay/record/block_codec.h"
#include "replay/record/content_digest.h"
#include "replay/record/run_reader.h"
#include "replay/record/schema.h"
#include "tests/fuzz/targets.h"
#include "tests/replay/synthetic_trace.h"

namespace areal::fuzz {
namespace {

using record::Database;

// What was decoded, encoded again and as a digest.
struct Decoded : port::TraceSink {
  void on_event(const port::TraceEvent& event) override { encoder.on_event(event), digest.on_event(event); }
  void on_state(NodeId node, SlotId slot, const Digest128& state) override {
    encoder.on_state(node, slot, state), digest.on_state(node, slot, state);
  }
  void on_stream(std::uint32_t stream, std::string_view name) override {
    encoder.on_stream(stream, name), digest.on_stream(stream, name);
  }
  void on_decision(const port::Decision& decision) override {
    encoder.on_decision(decision), digest.on_decision(decision);
  }
  record::BlockEncoder encoder;
  port::TraceDigest digest;
};

// Reads lines as a dump would.
struct Printer : port::EventSink {
  explicit Printer(const record::RunReader& run) : reader(run) {}
  void on_event(const port::TraceEvent& event) override {
    bytes += reader.kinds().to_text(event.record).size() + reader.kinds().to_text(event.body).size();
    bytes += reader.names().name(event.node, event.slot).size();
  }
  void on_stream(std::uint32_t /*stream*/, std::string_view name) override { bytes += name.size(); }
  const record::RunReader& reader;
  std::size_t bytes = 0;
};

// Asks a reader for everything that it has.
void read_everything(const std::string& path) {
  const auto opened = record::RunReader::open(path);
  if (!opened) {
    AREAL_CHECK(!opened.error().detail.empty());
    return;
  }
  const record::RunReader& reader = **opened;
  Printer printer(reader);
  static_cast<void>(reader.read_all(printer));
  for (const std::uint64_t seq : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{20}, ~std::uint64_t{0}}) {
    static_cast<void>(reader.event(seq));
  }
  static_cast<void>(reader.decisions(0));
  for (const record::SnapshotInfo& info : reader.snapshots()) static_cast<void>(reader.snapshot(info));
  for (const record::ViolationRow& row : reader.violations()) static_cast<void>(reader.names().name(row.node));
  static_cast<void>(reader.verdict());
  static_cast<void>(record::StoredKinds::from_bytes(reader.kinds().bytes()));
}

Bytes file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, View bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

const Bytes& small_recording() {
  static const Bytes kSmall = [] {
    const testing::ScratchFile file("fuzz_small.db");
    testing::record_synthetic(file.path(), 4, {.block_events = 8, .page_size = 512});
    return file_bytes(file.path());
  }();
  return kSmall;
}

// Reads a script of edits; what is missing at its end reads as zero.
class Script {
 public:
  explicit Script(View bytes) : bytes_(bytes) {}
  [[nodiscard]] bool at_end() const { return bytes_.empty(); }
  std::uint8_t u8() {
    if (bytes_.empty()) return 0;
    const std::uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  View take(std::size_t size) {
    const View taken = bytes_.first(std::min(size, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  record::Cell cell() {
    switch (u8() % 4) {
      case 0: {
        std::uint64_t number = 0;
        for (const std::uint8_t byte : take(8)) number = number << 8 | byte;
        return record::number_cell(number);
      }
      case 1: {
        const View text = take(u8());
        return std::string_view(reinterpret_cast<const char*>(text.data()), text.size());
      }
      case 2:
        return take(u8());
      default:
        return std::monostate{};
    }
  }

 private:
  View bytes_;
};

std::string column_of(const record::TableInfo& table, std::size_t index) {
  std::string_view rest = table.columns;
  std::vector<std::string> names;
  while (!rest.empty()) {
    rest.remove_prefix(std::min(rest.find_first_not_of(", "), rest.size()));
    names.emplace_back(rest.substr(0, rest.find_first_of(" ,")));
    rest.remove_prefix(std::min(rest.find(','), rest.size()));
  }
  return names[index % names.size()];
}

// One edit: [what] [table] [row] [column] [value]. What SQLite refuses is no edit.
void edit(Database& database, Script& script) {
  const std::uint8_t what = script.u8();
  const record::TableInfo& table = record::tables()[script.u8() % record::kTableCount];
  const std::string name(table.name);
  const std::string row =
      "(SELECT rowid FROM " + name + " ORDER BY rowid LIMIT 1 OFFSET " + std::to_string(script.u8()) + ")";
  const std::string column = column_of(table, script.u8());
  std::string sql = "UPDATE " + name + " SET " + column + " = ? WHERE rowid = " + row;
  if (what % 4 == 1) sql = "DELETE FROM " + name + " WHERE rowid = " + row + " AND ? IS NOT NULL";
  if (what % 4 == 2) sql = "UPDATE " + name + " SET " + column + " = ?";
  auto statement = database.prepare(sql);
  if (statement) static_cast<void>(statement->run({script.cell()}));
}

}  // namespace

// [lines, two bytes] [the block]. What decodes is encoded and decoded to the same lines. The reader of version 1 reads
// the same bytes, without a promise but to return.
void fuzz_block(View input) {
  if (input.size() < 2) return;
  const std::uint64_t lines = input[0] | static_cast<std::uint64_t>(input[1]) << 8;
  Decoded older;
  static_cast<void>(record::decode_block_v1(input.subspan(2), lines, older));
  Decoded first;
  if (!record::decode_block(input.subspan(2), lines, first)) return;
  AREAL_CHECK(first.encoder.lines() == lines);
  Decoded second;
  const Status again = record::decode_block(first.encoder.bytes(), lines, second);
  AREAL_CHECK(again.has_value());
  AREAL_CHECK(first.digest.digest() == second.digest.digest());
}

std::vector<Bytes> block_seeds() {
  std::vector<Bytes> seeds;
  for (const int steps : {1, 8, 60}) {
    record::BlockEncoder encoder;
    testing::SyntheticRun run(encoder);
    for (int i = 0; i < steps; ++i) run.step();
    run.update(1);
    Bytes seed{static_cast<std::uint8_t>(encoder.lines()), static_cast<std::uint8_t>(encoder.lines() >> 8)};
    seed.insert(seed.end(), encoder.bytes().begin(), encoder.bytes().end());
    seeds.push_back(seed);
  }
  return seeds;
}

// The bytes of a file.
void fuzz_recording(View input) {
  const testing::ScratchFile file("fuzz.db");
  write_file(file.path(), input);
  read_everything(file.path());
}

std::vector<Bytes> recording_seeds() { return {small_recording()}; }

// A script of edits to the rows of a sound recording, whose content digest is then made right again: as one could who
// knows the format.
void fuzz_rows(View input) {
  const testing::ScratchFile file("fuzz_rows.db");
  write_file(file.path(), small_recording());
  {
    auto database = Database::create(file.path());
    AREAL_CHECK(database.has_value());
    static_cast<void>(database->run("PRAGMA journal_mode=MEMORY"));
    static_cast<void>(database->run("PRAGMA synchronous=OFF"));
    static_cast<void>(database->run("BEGIN"));
    Script script(input);
    for (int edits = 0; edits < 8 && !script.at_end(); ++edits) edit(*database, script);
    const auto content = record::content_of(*database);
    AREAL_CHECK(content.has_value());
    const std::string hex = to_hex(*content);
    auto statement = database->prepare("UPDATE run SET value = ? WHERE key = 'content_digest'");
    AREAL_CHECK(statement.has_value());
    AREAL_CHECK(statement->run({std::string_view(hex)}).has_value());
    static_cast<void>(database->run("COMMIT"));
  }
  read_everything(file.path());
}

std::vector<Bytes> rows_seeds() {
  std::vector<Bytes> seeds;
  for (std::uint8_t table = 0; table < record::kTableCount; ++table) {
    for (std::uint8_t column = 0; column < 4; ++column) {
      seeds.push_back({0, table, 0, column, 0, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF});
      seeds.push_back({0, table, 1, column, 1, 5, 'e', '0', ',', '1', '='});
    }
    seeds.push_back({1, table, 0, 0, 0});
  }
  return seeds;
}

}  // namespace areal::fuzz
