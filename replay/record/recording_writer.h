// Turns the lines of a run into the rows of its recording: packs blocks, keeps the digest, fills tables, commits.
//
// What it writes depends on the lines alone, so it does not matter which thread calls it. Failures (disk full) are
// kept: lines are still digested, the file stays at its last commit, finish() returns the failure. Not thread-safe: one
// thread at a time.
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
#include "replay/record/recorder_options.h"
#include "replay/record/run_info.h"
#include "replay/record/stored_kinds.h"
#include "replay/record/table_writer.h"
#include "replay/record/trace_batch.h"
#include "replay/record/typed_rows.h"

namespace areal::record {

class RecordingWriter final : public port::TraceSink {
 public:
  // Replaces a recording of that name, and nothing else.
  static Result<std::unique_ptr<RecordingWriter>> open(const std::string& path, const RunInfo& info,
                                                       std::span<const NodeRow> nodes, const KindTable& kinds,
                                                       const RecorderOptions& options = {});
  ~RecordingWriter() override;

  void on_event(const port::TraceEvent& event) override;
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override;
  void on_stream(std::uint32_t stream, std::string_view name) override;
  void on_decision(const port::Decision& decision) override;
  // Lines that were gathered elsewhere.
  void write(const TraceBatch& batch);

  void add_violation(const ViolationRow& violation);
  // Closes the block and commits.
  void flush();
  void add_snapshot(std::uint64_t seq, std::span<const std::uint64_t> words);

  // REQUIRES: nothing is given afterwards.
  Status finish(const RunEnd& end);

  [[nodiscard]] bool failed() const { return tables_->failed(); }
  [[nodiscard]] Digest128 digest() const { return digest_.digest(); }

 private:
  struct Clock;

  RecordingWriter(std::unique_ptr<TableWriter> tables, std::span<const NodeRow> nodes, StoredKinds kinds,
                  const RecorderOptions& options);
  void write_head(const RunInfo& info, std::span<const NodeRow> nodes, const StoredKinds& kinds);
  void add_run_row(std::string_view key, std::string_view value);
  std::uint64_t add_blob(std::string_view kind, std::span<const std::uint8_t> bytes);
  void make_room();
  void close_block();
  void write_event(const port::TraceEvent& event);
  void write_state(NodeId node, SlotId slot, const Digest128& digest);
  void write_stream(std::uint32_t stream, std::string_view name);
  void write_decision(const port::Decision& decision);

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
