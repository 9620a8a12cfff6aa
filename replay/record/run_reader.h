// Reads a recording: what it is of, its trace line by line, its decisions and its violations.
//
// open() refuses what is damaged: every row is checked against the digest that was written with it, also in truncated
// recordings, up to their last commit. Lines that are read from the first on are checked against the chain too. open():
// kIo (no such file), kCorrupt (damaged, or no recording), kUnsupported (written by a newer program). Not thread-safe.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/port/trace_digest.h"
#include "engine/port/trace_sink.h"
#include "replay/record/database.h"
#include "replay/record/node_names.h"
#include "replay/record/run_info.h"
#include "replay/record/stored_kinds.h"

namespace areal::record {

// Truncated: finish() was never reached. It can be read, and says nothing about whether anything held.
enum class RecordingState : std::uint8_t { kComplete, kTruncated };

// Where a block of lines lies. A block without events has last_seq = first_seq - 1.
struct BlockInfo {
  std::uint64_t id = 0;
  std::uint64_t first_seq = 0;
  std::uint64_t last_seq = 0;
  Instant first_at;
  std::uint64_t events = 0;
  std::uint64_t lines = 0;
  std::uint64_t raw_bytes = 0;
  Digest128 chain;  // After the block.
};

struct SnapshotInfo {
  std::uint64_t seq = 0;
  std::uint64_t words = 0;
  Digest128 digest;
  std::uint64_t blob = 0;
};

class RunReader {
 public:
  static Result<std::unique_ptr<RunReader>> open(const std::string& path);

  [[nodiscard]] RecordingState state() const { return state_; }
  [[nodiscard]] const RunInfo& info() const { return info_; }
  [[nodiscard]] std::span<const NodeRow> nodes() const { return nodes_; }
  [[nodiscard]] const NodeNames& names() const { return names_; }
  [[nodiscard]] const StoredKinds& kinds() const { return kinds_; }
  [[nodiscard]] std::span<const BlockInfo> blocks() const { return blocks_; }
  [[nodiscard]] std::span<const ViolationRow> violations() const { return violations_; }
  [[nodiscard]] std::span<const SnapshotInfo> snapshots() const { return snapshots_; }
  // Names of decision streams, by number; "" where a number has none.
  [[nodiscard]] std::span<const std::string> streams() const { return streams_; }
  // Empty if truncated.
  [[nodiscard]] std::string verdict() const { return value("verdict"); }
  // After the last line that is stored. Recordings of version 1 have another program's digests.
  [[nodiscard]] Digest128 digest() const;
  [[nodiscard]] std::int64_t version() const { return version_; }
  // A value of table run; "" if there is none.
  [[nodiscard]] std::string value(std::string_view key) const;

  // Gives all lines, or those of blocks()[index], to `sink` in order. kCorrupt if they are not those that were
  // recorded; the sink has then heard some of them.
  Status read_all(port::TraceSink& sink) const;
  Status read_block(std::size_t index, port::TraceSink& sink) const;
  // The same; `walk` has heard all blocks before, hears this one, and is compared with what the writer had come to.
  Status read_block(std::size_t index, port::TraceSink& sink, port::TraceDigest& walk) const;
  // Whether `walk`, which has heard all blocks up to blocks()[index], has come to what the writer had.
  Status check_walk(std::size_t index, const port::TraceDigest& walk) const;
  // The block that holds event `seq`; nothing if none does.
  [[nodiscard]] std::optional<std::size_t> block_of(std::uint64_t seq) const;
  Result<port::TraceEvent> event(std::uint64_t seq) const;
  // All decisions of one stream, in order.
  Result<std::vector<port::Decision>> decisions(std::uint32_t stream) const;
  Result<std::vector<std::uint64_t>> snapshot(const SnapshotInfo& info) const;

 private:
  explicit RunReader(Database database) : database_(std::move(database)) {}
  Status check_version();
  Status load();
  Status load_run();
  Status load_nodes();
  Status load_blocks();
  Status load_lists();
  Result<std::vector<std::uint8_t>> unpack_row(const std::string& sql) const;

  mutable Database database_;  // Reading moves SQLite's cursors, nothing else.
  std::int64_t version_ = 0;   // As it was written.
  RecordingState state_ = RecordingState::kTruncated;
  RunInfo info_;
  std::vector<std::pair<std::string, std::string>> run_;
  std::vector<NodeRow> nodes_;
  NodeNames names_;
  StoredKinds kinds_;
  std::vector<BlockInfo> blocks_;
  std::vector<ViolationRow> violations_;
  std::vector<SnapshotInfo> snapshots_;
  std::vector<std::string> streams_;
};

}  // namespace areal::record
