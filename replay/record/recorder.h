// Writes one run into one file: a trace sink that knows no simulator.
//
// The same run gives the same bytes: nothing of the machine is inside (see meta_file.h), and when it commits does not
// show. A killed run leaves what it had committed, as a truncated recording; so does destruction without finish().
// Failures (disk full) are kept: the run goes on, the file stays at its last commit, finish() returns the failure.
// Not thread-safe: only the loop that steps the nodes calls it.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/port/trace_digest.h"
#include "engine/port/trace_sink.h"
#include "replay/record/block_codec.h"
#include "replay/record/compress.h"
#include "replay/record/run_info.h"
#include "replay/record/stored_kinds.h"
#include "replay/record/table_writer.h"
#include "replay/record/typed_rows.h"

namespace areal::record {

// Part of what makes files equal: two recordings are compared byte for byte only under equal options.
struct RecorderOptions {
  std::uint64_t block_events = 4096;
  std::uint64_t blocks_per_commit = 64;  // A block that is ready is also committed a second after the last commit.
  std::uint32_t page_size = 16384;
};

class Recorder : public port::TraceSink {
 public:
  // Replaces a recording of that name, and nothing else.
  static Result<std::unique_ptr<Recorder>> open(const std::string& path, const RunInfo& info,
                                                std::span<const NodeRow> nodes, const KindTable& kinds,
                                                const RecorderOptions& options = {});
  ~Recorder() override;

  void on_event(const port::TraceEvent& event) override;
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override;
  void on_stream(std::uint32_t stream, std::string_view name) override;
  void on_decision(const port::Decision& decision) override;

  // Commits everything up to here, so that a violation survives what it may lead to.
  void add_violation(const ViolationRow& violation);
  // Commits everything up to here: for processes that may be killed. Where blocks end shows in the file, so recordings
  // that are compared byte for byte must not call this by the clock.
  void flush();
  // The whole world before event `seq` + 1, as words.
  void add_snapshot(std::uint64_t seq, std::span<const std::uint64_t> words);

  // Closes the recording as complete. REQUIRES: nothing is given afterwards.
  Status finish(const RunEnd& end);

  [[nodiscard]] bool failed() const { return tables_->failed(); }
  // The run's digest so far; right also after a failure.
  [[nodiscard]] const Digest128& digest() const { return digest_.digest(); }

 private:
  struct Clock;

  Recorder(std::unique_ptr<TableWriter> tables, std::span<const NodeRow> nodes, StoredKinds kinds,
           const RecorderOptions& options);
  void write_head(const RunInfo& info, std::span<const NodeRow> nodes, const StoredKinds& kinds);
  void add_run_row(std::string_view key, std::string_view value);
  std::uint64_t add_blob(std::string_view kind, std::span<const std::uint8_t> bytes);
  void make_room();
  void close_block();

  RecorderOptions options_;
  std::unique_ptr<TableWriter> tables_;
  NodeNames names_;
  TypedRows typed_;
  BlockEncoder encoder_;
  Compressor compressor_;
  port::TraceDigest digest_;
  std::unique_ptr<Clock> clock_;
  std::uint64_t blocks_open_ = 0;  // Since the last commit.
  std::uint64_t last_seq_ = 0;
  std::uint64_t block_first_seq_ = 1;
  std::int64_t block_first_ns_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t decisions_ = 0;
  std::int64_t last_ns_ = 0;
};

}  // namespace areal::record
