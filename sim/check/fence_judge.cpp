// Watches for group operations of receivers whose device still writes.
#include "sim/check/fence_judge.h"

namespace areal::sim {

std::span<const KindId> FenceJudge::interest() const {
  static constexpr std::array<KindId, 7> kWanted{
      port::StartCompute::kKind, port::ComputeDone::kKind, port::JoinGroup::kKind, port::PostBatch::kKind,
      port::AbortGroup::kKind,   Incarnations::kStarted,   Incarnations::kChanged};
  return kWanted;
}

void FenceJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  if (const auto gone = incarnations_.renewed(event)) writing_.erase(*gone);
  if (record.kind == port::StartCompute::kKind) {
    if (applies(from_record<port::StartCompute>(record).what)) writing_[event.node] = event.seq;
  } else if (record.kind == port::ComputeDone::kKind) {
    const auto done = from_record<port::ComputeDone>(record);
    const bool fenced = done.what == port::ComputeKind::kFence && done.outcome == port::Outcome::kOk;
    // An apply that failed has nothing to report as written.
    const bool failed = applies(done.what) && done.outcome != port::Outcome::kOk;
    if (fenced || failed) writing_.erase(event.node);
  } else if (record.kind == port::AbortGroup::kKind) {
    // The update is given up: what is met from here on is of another epoch, which says nothing about these weights.
    writing_.erase(event.node);
  } else if (record.kind == port::JoinGroup::kKind) {
    const auto join = from_record<port::JoinGroup>(record);
    backends_[join.group] = join.backend;
  } else if (record.kind == port::PostBatch::kKind) {
    const auto batch = from_record<port::PostBatch>(record);
    const std::uint64_t* since = writing_.find(event.node);
    const port::Backend* backend = backends_.find(batch.group);
    if (since == nullptr || backend == nullptr || *backend != port::Backend::kGloo) return;
    Violation found =
        violation_at(InvariantId::kGlooFence, event,
                     say(setup_->name_of(event.node), " posted a ", to_text(batch.kind), " of version ", batch.version,
                         " while its weights were still being written: no device fence ended after the apply"));
    found.version = batch.version;
    found.related.push_back(*since);
    out.add(std::move(found));
  }
}

}  // namespace areal::sim
