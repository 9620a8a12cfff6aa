#include "engine/proto/guard.h"

#include <algorithm>

#include "engine/base/check.h"

namespace areal::proto {
namespace {

using port::LeaseState;

constexpr std::uint32_t kMaxDoublings = 6;

TimerId timer_of(NodeId node) { return {node.value}; }

Duration doubled(Duration delay, std::uint32_t times) {
  return delay * (std::int64_t{1} << std::min(times, kMaxDoublings));
}

// No listener can make the guard hold more than all that there ever is to tell.
CallerOptions with_room(const GuardOptions& options) {
  CallerOptions calls = options.calls;
  const std::size_t news = options.children.size() * (std::size_t{options.max_restarts} + 1) * 2;
  calls.limit = std::max(calls.limit, news * options.listeners.size());
  return calls;
}

}  // namespace

std::vector<GuardListener> membership_listeners(const ClusterMap& cluster) {
  return {{cluster.gateway, kGatewaySlot}, {cluster.router, kRouterSlot}, {cluster.controller, kTrainLoopSlot}};
}

Guard::Guard(GuardOptions options, ClusterMap cluster)
    : options_(std::move(options)),
      cluster_(std::move(cluster)),
      children_(options_.children.size()),
      reservations_(options_.reservation_limit),
      calls_(with_room(options_)) {}

void Guard::step(const Input& input, Outbox& out) {
  if (const auto* started = std::get_if<port::Started>(&input))
    on_started(*started, out);
  else if (const auto* message = std::get_if<port::MessageIn>(&input))
    on_message(*message, out);
  else if (const auto* fired = std::get_if<port::TimerFired>(&input))
    on_timer(*fired, out);
  else if (const auto* leased = std::get_if<port::PortLeased>(&input))
    on_leased(*leased, out);
  else if (const auto* process = std::get_if<port::ProcessStarted>(&input))
    on_process_started(*process, out);
  else if (const auto* exited = std::get_if<port::ProcessExited>(&input))
    on_exited(*exited, out);
  check_invariants();
}

void Guard::on_started(const port::Started& started, Outbox& out) {
  calls_.start(started.incarnation);
  last_op_ = std::max(last_op_, std::uint64_t{started.incarnation} << 32);
  for (const NodeId node : options_.children) {
    if (children_.insert(node, GuardChild{})) lease_child(node, out);  // Not twice, if this comes twice.
  }
}

// ---- Leases ----

void Guard::lease_child(NodeId node, Outbox& out) {
  const OpId op{++last_op_};
  children_.edit(node, [&](GuardChild& child) {
    child.phase = ChildPhase::kLeasing;
    child.op = op;
  });
  out.push(port::LeasePort{op});
}

void Guard::on_leased(const port::PortLeased& leased, Outbox& out) {
  // A port that is held already must not change hands, whatever the host says.
  const bool granted = leased.outcome == Outcome::kOk && leased.port != 0 && !holds(leased.port);
  for (const auto& [node, child] : children_) {
    if (child.phase == ChildPhase::kLeasing && child.op == leased.op) return grant_child(node, leased, granted, out);
  }
  for (const auto& [key, reservation] : reservations_) {
    if (reservation.op != OpId{} && reservation.op == leased.op) {
      return grant_reservation(ReservationKey(key), leased, granted, out);
    }
  }
  if (!granted) return;
  // Nobody waits for it any more.
  note_lease(leased.port, LeaseState::kLeased, NodeId{}, 0, out);
  out.push(port::ReleasePort{leased.port});
  note_lease(leased.port, LeaseState::kReleased, NodeId{}, 0, out);
}

void Guard::grant_child(NodeId node, const port::PortLeased& leased, bool granted, Outbox& out) {
  if (!granted) {
    Duration delay;
    children_.edit(node, [&](GuardChild& child) {
      child.phase = ChildPhase::kWaiting;
      delay = doubled(options_.lease_retry, child.lease_failures);
      child.lease_failures = std::min(child.lease_failures + 1, kMaxDoublings);
    });
    out.push(port::ArmTimer{timer_of(node), delay});
    return;
  }
  const OpId op{++last_op_};
  children_.edit(node, [&](GuardChild& child) {
    child.phase = ChildPhase::kStarting;
    child.port = leased.port;
    child.op = op;
    child.lease_failures = 0;
  });
  note_lease(leased.port, LeaseState::kLeased, node, 0, out);
  out.push(port::StartProcess{op, node, leased.port});
}

void Guard::release_child(NodeId node, Outbox& out) {
  const GuardChild child = *children_.find(node);
  children_.edit(node, [](GuardChild& changed) { changed.port = 0; });
  out.push(port::ReleasePort{child.port});
  note_lease(child.port, LeaseState::kReleased, node, child.incarnation, out);
}

// ---- Children ----

void Guard::on_process_started(const port::ProcessStarted& started, Outbox& out) {
  const GuardChild* child = children_.find(started.node);
  if (child == nullptr || child->phase != ChildPhase::kStarting || child->op != started.op) return;
  if (started.outcome != Outcome::kOk) {
    children_.edit(started.node, [](GuardChild& changed) { changed.phase = ChildPhase::kWaiting; });
    release_child(started.node, out);  // There never was a process.
    return replace_later(started.node, out);
  }
  const std::uint16_t port = child->port;
  children_.edit(started.node, [&](GuardChild& changed) {
    changed.phase = ChildPhase::kAlive;
    changed.incarnation = started.incarnation;
  });
  note_lease(port, LeaseState::kBound, started.node, started.incarnation, out);
  out.note(port::ProcessChanged{started.node, started.incarnation, true, port});
  announce(WorkerStarted{started.node, started.incarnation, port}, out);
}

void Guard::on_exited(const port::ProcessExited& exited, Outbox& out) {
  const GuardChild* child = children_.find(exited.node);
  // A process may be gone before its start was reported.
  const bool alive = child != nullptr && child->phase == ChildPhase::kAlive && child->incarnation == exited.incarnation;
  const bool newborn =
      child != nullptr && child->phase == ChildPhase::kStarting && exited.incarnation > child->incarnation;
  if (!alive && !newborn) {
    out.note(port::Refused{port::ProcessExited::kKind, Refusal::kUnknown, exited.node, exited.incarnation});
    return;
  }
  const std::uint16_t port = child->port;
  children_.edit(exited.node, [&](GuardChild& changed) {
    changed.phase = ChildPhase::kWaiting;
    changed.incarnation = exited.incarnation;
  });
  out.note(port::ProcessChanged{exited.node, exited.incarnation, false, port});
  calls_.forget_if(
      [&](const PendingRequest& asked) {
        bool obsolete = false;
        dispatch_record<WorkerStarted>(asked.body,
                                       [&](const WorkerStarted& news) { obsolete = news.node == exited.node; });
        return obsolete;
      },
      out);
  announce(WorkerExited{exited.node, exited.incarnation}, out);
  release_child(exited.node, out);
  replace_later(exited.node, out);
}

void Guard::replace_later(NodeId node, Outbox& out) {
  const std::uint32_t restarts = children_.find(node)->restarts;
  const bool used_up = restarts >= options_.max_restarts;
  children_.edit(node, [&](GuardChild& child) {
    child.phase = used_up ? ChildPhase::kEnded : ChildPhase::kWaiting;
    if (!used_up) ++child.restarts;
  });
  if (!used_up) out.push(port::ArmTimer{timer_of(node), doubled(options_.restart_delay, restarts)});
}

void Guard::on_timer(const port::TimerFired& fired, Outbox& out) {
  const NodeId node{fired.timer.value};
  if (const GuardChild* child = children_.find(node); child != nullptr) {
    if (child->phase != ChildPhase::kWaiting) return;
    // A replacement that nobody expects could be sent work as if it were the one before.
    if (death_is_untold(node)) {
      out.push(port::ArmTimer{timer_of(node), options_.lease_retry});
    } else {
      lease_child(node, out);
    }
    return;
  }
  const Caller::FiredResult result = calls_.on_timer(fired, out);
  const bool again = result.what == Caller::Fired::kGaveUp && is_news(result.request.body);
  if (again) calls_.ask_record(result.request.to, result.request.slot, result.request.body, out);
}

// ---- Members ----

template <RecordType T>
void Guard::announce(const T& news, Outbox& out) {
  if (!is_worker(news.node)) return;
  for (const GuardListener& listener : options_.listeners) calls_.ask(listener.node, listener.slot, news, out);
}

bool Guard::is_news(const Record& body) const {
  bool news = false;
  dispatch_record<WorkerStarted>(body, [&](const WorkerStarted& started) {
    const GuardChild* child = children_.find(started.node);
    news = child != nullptr && child->phase == ChildPhase::kAlive && child->incarnation == started.incarnation;
  });
  dispatch_record<WorkerExited>(body, [&](const WorkerExited& exited) {
    const GuardChild* child = children_.find(exited.node);
    news = child != nullptr && child->phase != ChildPhase::kAlive && child->incarnation == exited.incarnation;
  });
  return news;
}

bool Guard::death_is_untold(NodeId node) const {
  return std::ranges::any_of(calls_.pending(), [&](const auto& entry) {
    bool untold = false;
    dispatch_record<WorkerExited>(entry.value.body, [&](const WorkerExited& exited) { untold = exited.node == node; });
    return untold;
  });
}

bool Guard::is_worker(NodeId node) const {
  return std::ranges::find(cluster_.trainers, node) != cluster_.trainers.end() ||
         std::ranges::find(cluster_.engine_ranks, node) != cluster_.engine_ranks.end();
}

// ---- Reservations ----

void Guard::on_message(const port::MessageIn& message, Outbox& out) {
  if (message.kind == port::MessageKind::kReply) {
    calls_.answered(message, out);
    return;
  }
  if (!may_reserve(message.from)) {
    out.note(port::Refused{message.body.kind, Refusal::kUnknown, message.from, 0});
    return;
  }
  if (!callee_.admit(message, out)) return;
  const bool known =
      dispatch_record<ReservePort, ReturnPort>(message.body, [&](const auto& body) { on(message, body, out); });
  if (!known) out.note(port::Refused{message.body.kind, Refusal::kUnknown, message.from, 0});
}

void Guard::on(const port::MessageIn& message, const ReservePort& reserve, Outbox& out) {
  const RequestKey request = Callee::key_of(message);
  const ReservationKey key{message.from, reserve.epoch};
  const PortReservation* known = reservations_.find(key);
  if (known != nullptr && known->op == OpId{}) {
    return callee_.reply(request, PortReserved{reserve.epoch, Outcome::kOk, known->port}, out);
  }
  if (known != nullptr) {  // The asker gave up on the request before; this one gets the answer.
    reservations_.edit(key, [&](PortReservation& changed) { changed.request = message.request; });
    return;
  }
  const ReturnMark* mark = returned_.find(message.from);
  const bool late = mark != nullptr && reserve.epoch <= mark->epoch && message.request < mark->request;
  const OpId op{last_op_ + 1};
  const PortReservation fresh{op, 0, message.from_slot, message.from_incarnation, message.request};
  if (late || !reservations_.insert(key, fresh)) {
    const Refusal reason = late ? Refusal::kWrongEpoch : Refusal::kBusy;
    out.note(port::Refused{ReservePort::kKind, reason, message.from, reserve.epoch});
    return callee_.reply(request, PortReserved{reserve.epoch, Outcome::kRefused, 0}, out);
  }
  ++last_op_;
  out.push(port::LeasePort{op});
}

void Guard::grant_reservation(const ReservationKey& key, const port::PortLeased& leased, bool granted, Outbox& out) {
  const PortReservation waiting = *reservations_.find(key);
  const RequestKey request{key.from, waiting.request, waiting.slot};
  if (!granted) {  // Who asked decides whether to ask again.
    reservations_.erase(key);
    return callee_.reply(request, PortReserved{key.epoch, Outcome::kFailed, 0}, out);
  }
  reservations_.edit(key, [&](PortReservation& changed) {
    changed.op = OpId{};
    changed.port = leased.port;
  });
  note_lease(leased.port, LeaseState::kLeased, key.from, waiting.incarnation, out);
  callee_.reply(request, PortReserved{key.epoch, Outcome::kOk, leased.port}, out);
}

void Guard::on(const port::MessageIn& message, const ReturnPort& returned, Outbox& out) {
  const ReservationKey key{message.from, returned.epoch};
  const PortReservation* known = reservations_.find(key);
  const bool granted = known != nullptr && known->op == OpId{};
  if (granted && known->port != returned.port) {
    out.note(port::Refused{ReturnPort::kKind, Refusal::kWrongEpoch, message.from, returned.port});
  } else {
    if (granted) {
      out.push(port::ReleasePort{known->port});
      note_lease(known->port, LeaseState::kReleased, key.from, known->incarnation, out);
    }
    reservations_.erase(key);  // A lease under way is given back when it is granted.
    returned_.insert(key.from, ReturnMark{});
    returned_.edit(key.from, [&](ReturnMark& mark) {
      mark.epoch = std::max(mark.epoch, returned.epoch);
      mark.request = std::max(mark.request, message.request);
    });
  }
  callee_.reply(Callee::key_of(message), Ack{}, out);
}

// ---- Common ----

bool Guard::holds(std::uint16_t port) const {
  const auto of_child = [&](const auto& entry) { return entry.value.port == port; };
  return std::ranges::any_of(children_, of_child) || std::ranges::any_of(reservations_, of_child);
}

void Guard::note_lease(std::uint16_t port, LeaseState state, NodeId holder, Incarnation incarnation,
                       Outbox& out) const {
  out.note(port::LeaseChanged{options_.host, port, state, holder, incarnation});
}

void Guard::check_invariants() const {
  for (const auto& entry : children_) {
    const bool holds_port = entry.value.phase == ChildPhase::kStarting || entry.value.phase == ChildPhase::kAlive;
    AREAL_CHECK(holds_port == (entry.value.port != 0));
  }
}

void Guard::list_waits(WaitList& waits) const {
  for (const auto& [node, child] : children_) {
    if (child.phase == ChildPhase::kLeasing) waits.push_back({NodeId{}, "port lease", node.value});
    if (child.phase == ChildPhase::kStarting) waits.push_back({node, "process start", child.incarnation + 1});
  }
  for (const auto& [key, reservation] : reservations_) {
    if (reservation.op != OpId{}) waits.push_back({NodeId{}, "port lease for epoch", key.epoch});
  }
  for (const auto& entry : calls_.pending()) waits.push_back({entry.value.to, "reply to membership", entry.key.value});
}

}  // namespace areal::proto
