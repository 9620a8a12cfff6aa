#include "engine/proto/reconstruct.h"

namespace areal::proto {

void Reconstruct::begin(std::uint64_t rate, UpdateMember& member, Outbox& out) {
  *this = {};
  rate_ = rate;
  invert(member, out);
}

FullReason Reconstruct::why() const {
  if (failed_) return FullReason::kInversionError;
  return force_ ? FullReason::kInversionInfeasible : FullReason::kNone;
}

void Reconstruct::invert(UpdateMember& member, Outbox& out) {
  member.start_compute(port::ComputeKind::kInvert, {force_ ? 1U : 0U, window_, rate_}, out);
}

bool Reconstruct::on_compute(const port::ComputeDone& done, UpdateMember& member, Outbox& out) {
  if (done.what == port::ComputeKind::kInvert) {
    const bool leaves = done.outcome != Outcome::kOk && member.options().policies.leaves(done.outcome);
    if (!leaves) {
      reduce(done, member, out);
      return false;
    }
    force_ = failed_ = true;
    return true;
  }
  return done.what == port::ComputeKind::kCompare && compared(done, member, out);
}

void Reconstruct::reduce(const port::ComputeDone& done, UpdateMember& member, Outbox& out) {
  const bool ok = done.outcome == Outcome::kOk;
  failed_ = failed_ || !ok;
  force_ = force_ || !ok || done.total != 0;
  contributed_ = contributed_sum_ = ok ? done.count : 0;
  wishes_ = force_ ? 1 : 0;
  member.post_reductions(window_, contributed_, force_, out);
  if (member.pending() == 0) compare(member, out);
}

bool Reconstruct::on_batch(const port::BatchDone& done, UpdateMember& member, Outbox& out) {
  wishes_ += done.count;
  contributed_sum_ = std::max(contributed_sum_, done.value);
  if (member.pending() == 0) compare(member, out);
  return false;
}

void Reconstruct::compare(UpdateMember& member, Outbox& out) {
  force_ = force_ || wishes_ != 0;
  member.start_compute(port::ComputeKind::kCompare, {wishes_, window_, port::kNoRate}, out);
}

bool Reconstruct::compared(const port::ComputeDone& done, UpdateMember& member, Outbox& out) {
  const bool ok = done.outcome == Outcome::kOk;
  failed_ = failed_ || !ok;
  force_ = force_ || !ok || done.total != 0;
  changed_ += done.count;
  const ReconstructPlan& plan = *member.options().reconstruct;
  const AttemptKey& attempt = member.attempt();
  std::uint64_t reductions = 0;
  for (const WindowShare& share : plan.windows[window_].shares) reductions += 2 * share.parameters;
  out.note(port::WindowCompared{attempt.epoch, attempt.version, attempt.attempt, member.options().role_rank, window_,
                                reductions, member.pending(), contributed_sum_, done.count, force_});
  if (++window_ == plan.windows.size()) return true;
  invert(member, out);
  return false;
}

}  // namespace areal::proto
