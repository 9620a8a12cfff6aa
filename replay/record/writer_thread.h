// The thread that writes a recording: takes batches in order from a bounded queue.
//
// One thread gives, one takes. A full queue makes the giver wait: nothing is ever dropped. Batches that were taken are
// handed out again; the queue's memory grows only as far as the writer falls behind.
#pragma once
#include <condition_variable>
#include <ctime>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "replay/record/recording_writer.h"
#include "replay/record/trace_batch.h"

namespace areal::record {

class WriterThread {
 public:
  // `writer` belongs to the thread while it has anything to do, and to the giver after settle().
  WriterThread(RecordingWriter& writer, std::size_t most_waiting);
  // Takes what was given, then ends.
  ~WriterThread();
  WriterThread(const WriterThread&) = delete;
  WriterThread& operator=(const WriterThread&) = delete;

  // These are the giver's.
  [[nodiscard]] std::unique_ptr<TraceBatch> spare();
  void give(std::unique_ptr<TraceBatch> batch);
  // Waits until everything given is written.
  void settle();
  // The clock of the thread's processor time.
  [[nodiscard]] clockid_t cpu_clock();

 private:
  void work();
  void write(const TraceBatch& batch);

  RecordingWriter& writer_;
  const std::size_t most_waiting_;
  std::mutex mutex_;  // Of all below but the thread.
  std::condition_variable has_work_;
  std::condition_variable has_room_;  // Also: has nothing to do.
  std::deque<std::unique_ptr<TraceBatch>> waiting_;
  std::vector<std::unique_ptr<TraceBatch>> spare_;
  bool works_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace areal::record
