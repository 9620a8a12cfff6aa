// Counts sample groups, segments and tokens.
#include "sim/check/task_judge.h"

namespace areal::sim {

std::span<const KindId> TaskJudge::interest() const {
  static constexpr std::array<KindId, 9> kWanted{
      port::Admitted::kKind,      port::Routed::kKind,        port::Decoded::kKind,
      port::SegmentStored::kKind, port::GroupFinished::kKind, port::GroupConsumed::kKind,
      Incarnations::kStarted,     Incarnations::kChanged,     port::TrainingWorldChanged::kKind};
  return kWanted;
}

void TaskJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  if (const auto gone = incarnations_.renewed(event)) {
    const std::size_t before = tasks_.size();
    tasks_.erase_if([&](SampleGroupId, const Task& task) { return task.node == *gone; });
    if (tasks_.size() != before) samples_.clear();
  }
  if (record.kind == port::Decoded::kKind) {
    const auto decoded = from_record<port::Decoded>(record);
    decoded_seen_ = true;
    if (decoded.tokens > 0) ++samples_[decoded.sample].decoded[decoded.tokens];
  } else if (record.kind == port::Routed::kKind) {
    const auto routed = from_record<port::Routed>(record);
    routed_seen_ = true;
    samples_[routed.sample].routed = true;
    samples_[routed.sample].seq = event.seq;
  } else if (record.kind == port::SegmentStored::kKind) {
    on_stored(event, from_record<port::SegmentStored>(record), out);
  } else if (record.kind == port::Admitted::kKind) {
    const auto admitted = from_record<port::Admitted>(record);
    ++admitted_;
    const Task* known = tasks_.find(admitted.group);
    if (known != nullptr && !known->is_void) {
      report(event, InvariantId::kTaskTerminal, known->seq, say(" admitted sample group ", admitted.group, " twice"),
             out);
    }
    tasks_[admitted.group] = {Stage::kAdmitted, event.node, event.seq, false};
  } else if (record.kind == port::GroupFinished::kKind) {
    on_finished(event, from_record<port::GroupFinished>(record), out);
  } else if (record.kind == port::GroupConsumed::kKind) {
    on_consumed(event, from_record<port::GroupConsumed>(record), out);
  } else if (record.kind == port::TrainingWorldChanged::kKind) {
    for (auto& entry : tasks_) entry.value.is_void = true;
  }
}

void TaskJudge::report(const port::TraceEvent& event, InvariantId invariant, std::uint64_t related,
                       const std::string& why, Violations& out) const {
  Violation found = violation_at(invariant, event, setup_->name_of(event.node) + why);
  if (related != 0) found.related.push_back(related);
  out.add(std::move(found));
}

void TaskJudge::on_stored(const port::TraceEvent& event, const port::SegmentStored& stored, Violations& out) {
  Sample& sample = samples_[stored.sample];
  const auto blame = [&](std::string_view why, std::uint64_t related) {
    report(event, InvariantId::kDispConserve, related,
           say(" stored a segment of ", stored.tokens, " tokens of sample ", stored.sample, why), out);
  };
  if (routed_seen_ && !sample.routed) blame(", which was never sent to an engine", 0);
  sample.stored += stored.tokens;
  if (stored.tokens == 0 || !decoded_seen_) return;
  std::uint32_t* open = sample.decoded.find(stored.tokens);
  if (open != nullptr && *open > 0) {
    --*open;
    return;
  }
  blame(open != nullptr ? " once more than it was decoded" : ", which no engine decoded", sample.seq);
}

void TaskJudge::on_finished(const port::TraceEvent& event, const port::GroupFinished& finished, Violations& out) {
  Task* task = tasks_.find(finished.group);
  if (task == nullptr || task->stage != Stage::kAdmitted) {
    report(event, InvariantId::kTaskTerminal, task != nullptr ? task->seq : 0,
           say(" finished sample group ", finished.group,
               task == nullptr ? ", which was never admitted" : " a second time"),
           out);
    if (task == nullptr) return;
  }
  ++(finished.accepted ? accepted_ : rejected_);
  task->stage = finished.accepted ? Stage::kAccepted : Stage::kRejected;
  task->seq = event.seq;
  std::uint64_t tokens = 0;
  bool any = false;
  for (std::uint64_t i = 1; i <= finished.samples; ++i) {
    const SampleId id{(finished.group.value - 1) * finished.samples + i};
    const Sample* sample = samples_.find(id);
    if (sample == nullptr) continue;
    any = true;
    tokens += sample->stored;
    samples_.erase(id);
  }
  if (!any || tokens == finished.tokens) return;
  report(event, InvariantId::kDispConserve, 0,
         say(" finished sample group ", finished.group, " with ", finished.tokens, " tokens, but stored ", tokens,
             " for its samples"),
         out);
}

void TaskJudge::on_consumed(const port::TraceEvent& event, const port::GroupConsumed& consumed, Violations& out) {
  Task* task = tasks_.find(consumed.group);
  const bool may = task != nullptr && task->stage == Stage::kAccepted;
  if (!may) {
    const std::string_view why = task == nullptr                   ? ", which was never admitted"
                                 : task->stage == Stage::kConsumed ? " a second time"
                                 : task->stage == Stage::kRejected ? ", which was rejected"
                                                                   : ", which is not finished";
    report(event, InvariantId::kTaskTerminal, task != nullptr ? task->seq : 0,
           say(" took sample group ", consumed.group, " into batch ", consumed.batch, why), out);
  }
  if (task == nullptr) return;
  task->stage = Stage::kConsumed;
  task->seq = event.seq;
}

void TaskJudge::measure(std::vector<Measure>& out) const {
  out.push_back({"sample groups admitted", admitted_});
  out.push_back({"sample groups accepted", accepted_});
  out.push_back({"sample groups rejected", rejected_});
}

}  // namespace areal::sim
