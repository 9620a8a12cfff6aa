#include "replay/record/run_reader.h"

#include <algorithm>
#include <charconv>

#include "engine/base/bytes.h"
#include "replay/record/block_codec.h"
#include "replay/record/compress.h"
#include "replay/record/content_digest.h"
#include "replay/record/schema.h"

namespace areal::record {

namespace {

// No block or blob is larger; a writer closes blocks at 1 MiB, snapshots are the largest blobs.
constexpr std::uint64_t kMaxRawBytes = 256U << 20;
constexpr std::size_t kMaxStreams = 1 << 20;
constexpr std::string_view kOverride = "override.";

// Calls `row(statement)` for each row; its Status ends the loop.
template <class Row>
Status each_row(Database& database, std::string_view sql, Row&& row) {
  auto statement = database.prepare(sql);
  if (!statement) return statement.error();
  while (true) {
    const auto more = statement->next();
    if (!more) return more.error();
    if (!*more) return Unit{};
    AREAL_TRY(row(*statement));
  }
}

Result<Digest128> digest_of(std::string_view hex) {
  static constexpr FieldInfo kField{.name = "digest", .type = FieldType::kDigest, .words = 2, .names = {}};
  const auto words = parse_field(kField, hex);
  if (!words) return Error{Errc::kCorrupt, "a digest of the recording is no digest"};
  return Digest128{.high = (*words)[0], .low = (*words)[1]};
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; !text.empty() && start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::uint64_t word(const Statement& row, int column) { return static_cast<std::uint64_t>(row.integer(column)); }

}  // namespace

Result<std::unique_ptr<RunReader>> RunReader::open(const std::string& path) {
  auto database = Database::open_read(path);
  if (!database) return database.error();
  std::unique_ptr<RunReader> reader(new RunReader(std::move(*database)));
  Status status = reader->check_version();
  if (status) status = reader->load();
  if (status) return reader;
  const bool is_damaged = status.error().code == Errc::kCorrupt;
  return Error{status.error().code, path + (is_damaged ? ": damaged recording: " : ": ") + status.error().detail};
}

Status RunReader::check_version() {
  const auto id = database_.integer("PRAGMA application_id");
  if (!id) return id.error();
  if (*id != kOpenId && *id != kCompleteId) return Error{Errc::kCorrupt, "this is no recording of areal-sim"};
  state_ = *id == kCompleteId ? RecordingState::kComplete : RecordingState::kTruncated;
  const auto version = database_.integer("PRAGMA user_version");
  if (!version) return version.error();
  version_ = *version;
  if (*version > kSchemaVersion) {
    return Error{Errc::kUnsupported, "the recording has version " + std::to_string(*version) +
                                         "; this program reads versions up to " + std::to_string(kSchemaVersion) +
                                         ": use a newer one"};
  }
  if (*version < 1) return Error{Errc::kCorrupt, "the recording has no version"};
  AREAL_TRY(check_content(database_));
  if (*version == kSchemaVersion) return Unit{};
  auto copy = database_.copy_in_memory();
  if (!copy) return copy.error();
  AREAL_TRY(migrate(*copy, *version, kSchemaVersion, migrations()));
  database_ = std::move(*copy);
  return Unit{};
}

Status RunReader::load() {
  AREAL_TRY(load_run());
  AREAL_TRY(load_nodes());
  AREAL_TRY(load_blocks());
  AREAL_TRY(load_lists());
  const auto bytes = unpack_row("SELECT raw_bytes, body FROM blob WHERE kind = 'kinds' ORDER BY id LIMIT 1");
  if (!bytes) return bytes.error();
  auto kinds = StoredKinds::from_bytes(*bytes);
  if (!kinds) return kinds.error();
  kinds_ = std::move(*kinds);
  if (state_ == RecordingState::kTruncated) return Unit{};
  if (value("digest") != to_hex(digest())) return Error{Errc::kCorrupt, "the last block is not where the run ended"};
  return Unit{};
}

Status RunReader::load_run() {
  AREAL_TRY(each_row(database_, "SELECT key, value FROM run ORDER BY id", [this](const Statement& row) -> Status {
    run_.emplace_back(row.text(0), row.text(1));
    return Unit{};
  }));
  // No digest covers the header's version; version 1 had no such row.
  if (value("version") != (version_ == 1 ? "" : std::to_string(version_))) {
    return Error{Errc::kCorrupt, "the recording's header and its content are of different versions"};
  }
  info_.half = value("half");
  info_.program = value("program");
  const std::string seed = value("seed");
  std::from_chars(seed.data(), seed.data() + seed.size(), info_.seed);
  for (const auto& [key, text] : run_) {
    if (key.starts_with(kOverride)) info_.overrides.emplace_back(key.substr(kOverride.size()), text);
  }
  return each_row(database_, "SELECT name, text FROM scenario ORDER BY id", [this](const Statement& row) -> Status {
    info_.scenario_name = row.text(0);
    info_.scenario_text = row.text(1);
    return Unit{};
  });
}

Status RunReader::load_nodes() {
  AREAL_TRY(each_row(
      database_, "SELECT id, name, role, host, slots FROM node ORDER BY id", [this](const Statement& row) -> Status {
        nodes_.push_back({NodeId{word(row, 0)}, row.text(1), row.text(2), HostId{word(row, 3)}, split(row.text(4))});
        return Unit{};
      }));
  names_ = NodeNames(nodes_);
  return Unit{};
}

Status RunReader::load_blocks() {
  return each_row(
      database_,
      "SELECT id, first_seq, last_seq, first_ns, events, lines, raw_bytes, chain FROM event_block ORDER BY id",
      [this](const Statement& row) -> Status {
        const auto chain = digest_of(row.text(7));
        if (!chain) return chain.error();
        blocks_.push_back({.id = word(row, 0),
                           .first_seq = word(row, 1),
                           .last_seq = word(row, 2),
                           .first_at = {row.integer(3)},
                           .events = word(row, 4),
                           .lines = word(row, 5),
                           .raw_bytes = word(row, 6),
                           .chain = *chain});
        return Unit{};
      });
}

Status RunReader::load_lists() {
  AREAL_TRY(each_row(database_, "SELECT id, name FROM stream ORDER BY id", [this](const Statement& row) -> Status {
    const std::uint64_t id = word(row, 0);
    if (id >= kMaxStreams) return Error{Errc::kCorrupt, "a decision stream has the number " + std::to_string(id)};
    streams_.resize(id + 1);
    streams_[id] = row.text(1);
    return Unit{};
  }));
  // Nodes are stored by name; their ids are those of the node table.
  AREAL_TRY(
      each_row(database_,
               "SELECT invariant, verdict, seq, coalesce((SELECT min(id) FROM node WHERE node.name = violation.node), "
               "0), message FROM violation ORDER BY id",
               [this](const Statement& row) -> Status {
                 violations_.push_back({row.text(0), row.text(1), word(row, 2), NodeId{word(row, 3)}, row.text(4)});
                 return Unit{};
               }));
  return each_row(database_, "SELECT seq, words, digest, blob FROM snapshot ORDER BY seq",
                  [this](const Statement& row) -> Status {
                    const auto digest = digest_of(row.text(2));
                    if (!digest) return digest.error();
                    snapshots_.push_back({word(row, 0), word(row, 1), *digest, word(row, 3)});
                    return Unit{};
                  });
}

std::string RunReader::value(std::string_view key) const {
  const auto found = std::ranges::find(run_, key, [](const auto& row) -> std::string_view { return row.first; });
  return found != run_.end() ? found->second : std::string();
}

Result<std::vector<std::uint8_t>> RunReader::unpack_row(const std::string& sql) const {
  auto row = database_.prepare(sql);
  if (!row) return row.error();
  const auto found = row->next();
  if (!found) return found.error();
  if (!*found) return Error{Errc::kCorrupt, "a packed value is missing"};
  const std::uint64_t size = word(*row, 0);
  if (size > kMaxRawBytes) return Error{Errc::kCorrupt, "a packed value claims " + std::to_string(size) + " bytes"};
  return unpack(row->bytes(1), size);
}

namespace {

// Passes lines on and digests them.
class CheckedSink : public port::TraceSink {
 public:
  CheckedSink(port::TraceSink& sink, port::TraceDigest& walk) : sink_(sink), walk_(walk) {}

  void on_event(const port::TraceEvent& event) override { walk_.on_event(event), sink_.on_event(event); }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override {
    walk_.on_state(node, slot, digest), sink_.on_state(node, slot, digest);
  }
  void on_stream(std::uint32_t stream, std::string_view name) override {
    walk_.on_stream(stream, name), sink_.on_stream(stream, name);
  }
  void on_decision(const port::Decision& decision) override {
    walk_.on_decision(decision), sink_.on_decision(decision);
  }

 private:
  port::TraceSink& sink_;
  port::TraceDigest& walk_;
};

class EventFinder : public port::EventSink {
 public:
  explicit EventFinder(std::uint64_t seq) : seq_(seq) {}
  void on_event(const port::TraceEvent& event) override {
    if (event.seq == seq_) found_ = event;
  }
  [[nodiscard]] const std::optional<port::TraceEvent>& found() const { return found_; }

 private:
  std::uint64_t seq_;
  std::optional<port::TraceEvent> found_;
};

class DecisionCollector : public port::EventSink {
 public:
  explicit DecisionCollector(std::uint32_t stream) : stream_(stream) {}
  void on_event(const port::TraceEvent&) override {}
  void on_decision(const port::Decision& decision) override {
    if (decision.stream == stream_) decisions_.push_back(decision);
  }
  std::vector<port::Decision> take() { return std::move(decisions_); }

 private:
  std::uint32_t stream_;
  std::vector<port::Decision> decisions_;
};

}  // namespace

Digest128 RunReader::digest() const {
  if (!blocks_.empty()) return blocks_.back().chain;
  return version_ == 1 ? Digest128{} : port::TraceDigest().digest();
}

Status RunReader::read_all(port::TraceSink& sink) const {
  port::TraceDigest walk;
  for (std::size_t index = 0; index < blocks_.size(); ++index) AREAL_TRY(read_block(index, sink, walk));
  return Unit{};
}

Status RunReader::read_block(std::size_t index, port::TraceSink& sink) const {
  AREAL_CHECK(index < blocks_.size());
  const BlockInfo& block = blocks_[index];
  const auto bytes = unpack_row("SELECT raw_bytes, body FROM event_block WHERE id = " + std::to_string(block.id));
  if (!bytes) return bytes.error();
  return version_ == 1 ? decode_block_v1(*bytes, block.lines, sink) : decode_block(*bytes, block.lines, sink);
}

Status RunReader::read_block(std::size_t index, port::TraceSink& sink, port::TraceDigest& walk) const {
  CheckedSink checked(sink, walk);
  AREAL_TRY(read_block(index, checked));
  return check_walk(index, walk);
}

Status RunReader::check_walk(std::size_t index, const port::TraceDigest& walk) const {
  // Version 1 chained otherwise; what it stored is covered by the digest over all rows.
  if (version_ == 1 || walk.digest() == blocks_[index].chain) return Unit{};
  return Error{Errc::kCorrupt,
               "the lines of block " + std::to_string(blocks_[index].id) + " are not those that were recorded"};
}

std::optional<std::size_t> RunReader::block_of(std::uint64_t seq) const {
  const auto place = std::ranges::lower_bound(blocks_, seq, {}, &BlockInfo::last_seq);
  if (place == blocks_.end() || seq < place->first_seq) return std::nullopt;
  return static_cast<std::size_t>(place - blocks_.begin());
}

Result<port::TraceEvent> RunReader::event(std::uint64_t seq) const {
  const auto block = block_of(seq);
  EventFinder finder(seq);
  if (block) AREAL_TRY(read_block(*block, finder));
  if (!finder.found()) return Error{Errc::kInvalid, "there is no event " + std::to_string(seq)};
  return *finder.found();
}

Result<std::vector<port::Decision>> RunReader::decisions(std::uint32_t stream) const {
  DecisionCollector collector(stream);
  AREAL_TRY(read_all(collector));
  return collector.take();
}

Result<std::vector<std::uint64_t>> RunReader::snapshot(const SnapshotInfo& info) const {
  const auto bytes = unpack_row("SELECT raw_bytes, body FROM blob WHERE id = " + std::to_string(info.blob));
  if (!bytes) return bytes.error();
  std::vector<std::uint64_t> words;
  ByteReader in(*bytes);
  for (std::uint64_t left = info.words; left > 0 && in.ok(); --left) words.push_back(in.varint());
  if (!in.ok() || !in.at_end() || hash_words(words) != info.digest) {
    return Error{Errc::kCorrupt, "the snapshot at " + std::to_string(info.seq) + " does not decode"};
  }
  return words;
}

}  // namespace areal::record
