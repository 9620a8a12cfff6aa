#include "replay/record/writer_thread.h"

#include <csignal>

namespace areal::record {

namespace {

// A thread that gets no signals: those of the process are its loop's.
template <class Work>
std::thread start_without_signals(Work work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

WriterThread::WriterThread(RecordingWriter& writer, std::size_t most_waiting)
    : writer_(writer), most_waiting_(most_waiting) {
  thread_ = start_without_signals([this] { work(); });
}

WriterThread::~WriterThread() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  has_work_.notify_one();
  thread_.join();
}

std::unique_ptr<TraceBatch> WriterThread::spare() {
  {
    const std::scoped_lock lock(mutex_);
    if (!spare_.empty()) {
      auto batch = std::move(spare_.back());
      spare_.pop_back();
      return batch;
    }
  }
  return std::make_unique<TraceBatch>();
}

void WriterThread::give(std::unique_ptr<TraceBatch> batch) {
  {
    std::unique_lock lock(mutex_);
    has_room_.wait(lock, [this] { return waiting_.size() < most_waiting_; });
    waiting_.push_back(std::move(batch));
  }
  has_work_.notify_one();
}

void WriterThread::settle() {
  std::unique_lock lock(mutex_);
  has_room_.wait(lock, [this] { return waiting_.empty() && !works_; });
}

clockid_t WriterThread::cpu_clock() {
  clockid_t clock = 0;
  pthread_getcpuclockid(thread_.native_handle(), &clock);
  return clock;
}

void WriterThread::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    has_work_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::unique_ptr<TraceBatch> batch = std::move(waiting_.front());
    waiting_.pop_front();
    works_ = true;
    lock.unlock();
    write(*batch);
    batch->clear();
    lock.lock();
    works_ = false;
    spare_.push_back(std::move(batch));
    has_room_.notify_one();
  }
}

void WriterThread::write(const TraceBatch& batch) {
  writer_.write(batch);
  if (batch.commits) writer_.flush();
}

}  // namespace areal::record
