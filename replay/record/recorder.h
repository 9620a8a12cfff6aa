// Writes one run into one file: a trace sink that knows no simulator.
//
// The same run gives the same bytes: nothing of the machine is inside (see meta_file.h), and neither which thread wrote
// nor when it committed shows. A killed run leaves what had been committed, as a truncated recording; so does
// destruction without finish(). Failures (disk full) are kept: the run goes on, the file stays at its last commit,
// finish() returns the failure. Not thread-safe: only the loop that steps the nodes calls it. With a thread of its own
// (recorder_options.h) that loop only copies lines, and whatever asks for a result waits for the thread first.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "engine/base/result.h"
#include "engine/port/trace_digest.h"
#include "engine/port/trace_sink.h"
#include "replay/record/recorder_options.h"
#include "replay/record/run_info.h"

namespace areal::record {

class RecordingWriter;
class TraceBatch;
class WriterThread;

class Recorder final : public port::TraceSink {
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
  // The same without waiting for it.
  void flush_soon();
  // Waits until everything up to here is written; commits nothing.
  void settle();
  // The whole world before event `seq` + 1, as words.
  void add_snapshot(std::uint64_t seq, std::span<const std::uint64_t> words);

  // Closes the recording as complete. REQUIRES: nothing is given afterwards.
  Status finish(const RunEnd& end);

  // Whether anything up to here could not be written.
  [[nodiscard]] bool failed();
  // The run's digest up to here; right also after a failure.
  [[nodiscard]] Digest128 digest();
  // The processor time that writing has taken so far, whoever wrote; copying lines is not in it, and inline nothing is
  // but what opening, committing and ending took.
  [[nodiscard]] Duration cpu_time();

 private:
  Recorder(std::unique_ptr<RecordingWriter> writer, const RecorderOptions& options);
  void hand_over();
  template <class Work>
  auto timed(Work work);

  std::unique_ptr<RecordingWriter> writer_;
  std::unique_ptr<WriterThread> thread_;  // Null: lines go straight to the writer.
  std::unique_ptr<TraceBatch> batch_;     // Being filled; null without a thread.
  Duration own_time_;                     // Of the calling thread.
};

}  // namespace areal::record
