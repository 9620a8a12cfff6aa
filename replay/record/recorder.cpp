#include "replay/record/recorder.h"

#include <ctime>

#include "replay/record/cores.h"
#include "replay/record/recording_writer.h"
#include "replay/record/trace_batch.h"
#include "replay/record/writer_thread.h"

namespace areal::record {

namespace {

Instant thread_time(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return Instant{std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
}

bool writes_in_background(Writing writing) {
  return writing == Writing::kBackground || (writing == Writing::kAuto && may_use_two_cores());
}

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::open(const std::string& path, const RunInfo& info,
                                                 std::span<const NodeRow> nodes, const KindTable& kinds,
                                                 const RecorderOptions& options) {
  const Instant start = thread_time(CLOCK_THREAD_CPUTIME_ID);
  auto writer = RecordingWriter::open(path, info, nodes, kinds, options);
  if (!writer) return writer.error();
  std::unique_ptr<Recorder> recorder(new Recorder(std::move(*writer), options));
  recorder->own_time_ = thread_time(CLOCK_THREAD_CPUTIME_ID) - start;
  return recorder;
}

template <class Work>
auto Recorder::timed(Work work) {
  settle();
  const Instant start = thread_time(CLOCK_THREAD_CPUTIME_ID);
  auto result = work();
  own_time_ = own_time_ + (thread_time(CLOCK_THREAD_CPUTIME_ID) - start);
  return result;
}

Recorder::Recorder(std::unique_ptr<RecordingWriter> writer, const RecorderOptions& options)
    : writer_(std::move(writer)) {
  if (!writes_in_background(options.writing)) return;
  thread_ = std::make_unique<WriterThread>(*writer_, options.batches_behind);
  batch_ = thread_->spare();
}

Recorder::~Recorder() { settle(); }

void Recorder::hand_over() {
  thread_->give(std::move(batch_));
  batch_ = thread_->spare();
}

void Recorder::on_event(const port::TraceEvent& event) {
  if (thread_ == nullptr) return writer_->on_event(event);
  batch_->on_event(event);
  if (batch_->is_full()) hand_over();
}

void Recorder::on_state(NodeId node, SlotId slot, const Digest128& digest) {
  if (thread_ == nullptr) return writer_->on_state(node, slot, digest);
  batch_->on_state(node, slot, digest);
  if (batch_->is_full()) hand_over();
}

void Recorder::on_stream(std::uint32_t stream, std::string_view name) {
  if (thread_ == nullptr) return writer_->on_stream(stream, name);
  batch_->on_stream(stream, name);
  if (batch_->is_full()) hand_over();
}

void Recorder::on_decision(const port::Decision& decision) {
  if (thread_ == nullptr) return writer_->on_decision(decision);
  batch_->on_decision(decision);
  if (batch_->is_full()) hand_over();
}

void Recorder::settle() {
  if (thread_ == nullptr) return;
  if (!batch_->is_empty()) hand_over();
  thread_->settle();
}

void Recorder::flush_soon() {
  if (thread_ == nullptr) return flush();
  batch_->commits = true;
  hand_over();
}

// The thread stands still from settle() until it is given something, so the rest may be done here.
void Recorder::flush() {
  timed([this] { return writer_->flush(), Unit{}; });
}

void Recorder::add_violation(const ViolationRow& violation) {
  timed([&] { return writer_->add_violation(violation), Unit{}; });
}

void Recorder::add_snapshot(std::uint64_t seq, std::span<const std::uint64_t> words) {
  timed([&] { return writer_->add_snapshot(seq, words), Unit{}; });
}

Status Recorder::finish(const RunEnd& end) {
  return timed([&] { return writer_->finish(end); });
}

Duration Recorder::cpu_time() {
  settle();
  return thread_ != nullptr ? own_time_ + (thread_time(thread_->cpu_clock()) - Instant{}) : own_time_;
}

bool Recorder::failed() {
  settle();
  return writer_->failed();
}

Digest128 Recorder::digest() {
  settle();
  return writer_->digest();
}

}  // namespace areal::record
