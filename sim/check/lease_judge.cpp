// Follows port leases and the processes that hold them.
#include "sim/check/lease_judge.h"

namespace areal::sim {

std::span<const KindId> LeaseJudge::interest() const {
  static constexpr std::array<KindId, 5> kWanted{port::LeaseChanged::kKind, port::StartProcess::kKind,
                                                 port::ProcessStarted::kKind, port::ProcessChanged::kKind,
                                                 port::Started::kKind};
  return kWanted;
}

void LeaseJudge::on_event(const port::TraceEvent& event, Violations& out) {
  last_ = event;
  const Record& record = subject(event);
  if (record.kind == port::Started::kKind) {
    leases_.erase_if([&](const Place&, const Lease& lease) {
      return lease.guard == event.node && lease.guard_incarnation < event.incarnation;
    });
  } else if (record.kind == port::LeaseChanged::kKind) {
    on_lease(event, from_record<port::LeaseChanged>(record), out);
  } else if (record.kind == port::StartProcess::kKind) {
    processes_[from_record<port::StartProcess>(record).node].starting = true;
  } else if (record.kind == port::ProcessStarted::kKind) {
    processes_[from_record<port::ProcessStarted>(record).node].starting = false;
  } else {
    on_process(event, from_record<port::ProcessChanged>(record), out);
  }
}

bool LeaseJudge::is_alive(NodeId node, Incarnation incarnation) const {
  const Process* process = processes_.find(node);
  return process != nullptr && process->alive && (incarnation == 0 || incarnation == process->incarnation);
}

void LeaseJudge::report(const port::TraceEvent& event, InvariantId invariant, std::uint64_t related,
                        const std::string& why, Violations& out) const {
  Violation found = violation_at(invariant, event, setup_->name_of(event.node) + why);
  if (related != 0) found.related.push_back(related);
  out.add(std::move(found));
}

void LeaseJudge::on_lease(const port::TraceEvent& event, const port::LeaseChanged& lease, Violations& out) {
  const Place place{lease.host, lease.port};
  const Lease* held = leases_.find(place);
  if (lease.state == port::LeaseState::kReleased) {
    const bool bound = held != nullptr && held->bound;
    if (bound && is_alive(lease.holder, lease.incarnation)) {
      report(event, InvariantId::kPortReleaseAfterExit, processes_.find(lease.holder)->seq,
             say(" released port ", lease.port, " of host ", lease.host, " while ", setup_->name_of(lease.holder),
                 " (incarnation ", lease.incarnation, "), which holds it, is not confirmed dead"),
             out);
    }
    leases_.erase(place);
    return;
  }
  if (held != nullptr && held->holder != lease.holder) {
    report(event, InvariantId::kInv10, held->seq,
           say(" gave port ", lease.port, " of host ", lease.host, " to ", setup_->name_of(lease.holder), ", but ",
               setup_->name_of(held->holder), " holds it"),
           out);
  } else if (held != nullptr && lease.incarnation > held->incarnation && held->incarnation != 0 &&
             is_alive(held->holder, held->incarnation)) {
    report(event, InvariantId::kInv10, held->seq,
           say(" gave port ", lease.port, " of host ", lease.host, " to incarnation ", lease.incarnation, " of ",
               setup_->name_of(lease.holder), " while incarnation ", held->incarnation, " is not confirmed dead"),
           out);
  }
  const bool bound = lease.state == port::LeaseState::kBound;
  leases_[place] = {lease.holder, lease.incarnation, event.node, event.incarnation, bound, event.seq};
}

void LeaseJudge::on_process(const port::TraceEvent& event, const port::ProcessChanged& changed, Violations& out) {
  Process& process = processes_[changed.node];
  const bool same_guard = process.guard_incarnation == event.incarnation;
  if (same_guard && changed.alive && process.alive && changed.incarnation != process.incarnation) {
    report(event, InvariantId::kInv11, process.seq,
           say(" started incarnation ", changed.incarnation, " of ", setup_->name_of(changed.node),
               " while incarnation ", process.incarnation, " was not confirmed dead"),
           out);
  }
  if (!changed.alive && changed.incarnation < process.incarnation) return;  // Late news of an older one.
  process = {changed.incarnation, changed.alive, false, event.incarnation, event.seq};
}

void LeaseJudge::at_end(bool finished, Violations& out) {
  if (!finished) return;
  for (const auto& [node, process] : processes_) {
    if (!process.alive || setup_->find(node) != nullptr) continue;
    Violation found =
        violation_at(InvariantId::kInv11, last_, say(setup_->name_of(node), " still runs, and nobody accounts for it"));
    found.node = node;
    found.related.push_back(process.seq);
    out.add(std::move(found));
  }
  for (const auto& [place, lease] : leases_) {
    const Process* process = processes_.find(lease.holder);
    if (process == nullptr || process->alive || process->starting) continue;
    Violation found = violation_at(InvariantId::kInv11, last_,
                                   say("port ", place.port, " of host ", place.host, " is still leased to ",
                                       setup_->name_of(lease.holder), ", which is dead"));
    found.node = lease.holder;
    found.related.push_back(lease.seq);
    found.related.push_back(process->seq);
    out.add(std::move(found));
  }
}

}  // namespace areal::sim
