#include "replay/record/recorder.h"

#include <sched.h>

#include "replay/record/recording_writer.h"
#include "replay/record/trace_batch.h"
#include "replay/record/writer_thread.h"

namespace areal::record {

namespace {

bool may_use_two_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  // More cores than the set has room for make the call fail.
  return ::sched_getaffinity(0, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) > 1;
}

bool writes_in_background(Writing writing) {
  return writing == Writing::kBackground || (writing == Writing::kAuto && may_use_two_cores());
}

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::open(const std::string& path, const RunInfo& info,
                                                 std::span<const NodeRow> nodes, const KindTable& kinds,
                                                 const RecorderOptions& options) {
  auto writer = RecordingWriter::open(path, info, nodes, kinds, options);
  if (!writer) return writer.error();
  return std::unique_ptr<Recorder>(new Recorder(std::move(*writer), options));
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
  if (thread_ == nullptr) return writer_->flush();
  batch_->commits = true;
  hand_over();
}

// The thread stands still from settle() until it is given something, so the rest may be done here.
void Recorder::flush() {
  settle();
  writer_->flush();
}

void Recorder::add_violation(const ViolationRow& violation) {
  settle();
  writer_->add_violation(violation);
}

void Recorder::add_snapshot(std::uint64_t seq, std::span<const std::uint64_t> words) {
  settle();
  writer_->add_snapshot(seq, words);
}

Status Recorder::finish(const RunEnd& end) {
  settle();
  return writer_->finish(end);
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
