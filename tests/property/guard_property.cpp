// The guard on a host that does anything in any order: one live owner a port, every death is followed by a lease, and
// nothing is left when all is over.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "engine/base/rng.h"
#include "engine/proto/guard.h"
#include "tests/unit/effects.h"

namespace areal::proto {
namespace {

constexpr NodeId kGateway{3};
constexpr NodeId kRouter{4};
constexpr std::uint32_t kMaxRestarts = 4;

ClusterMap small_cluster() {
  ClusterMap cluster;
  cluster.trainers = {{10}, {11}};
  cluster.engine_ranks = {{20}};
  cluster.gateway = kGateway;
  cluster.router = kRouter;
  return cluster;
}

Guard make_guard() {
  GuardOptions options;
  options.host = {1};
  options.children = {{10}, {11}, {20}};
  options.listeners = membership_listeners(small_cluster());
  options.max_restarts = kMaxRestarts;
  options.calls.tries = 3;
  return Guard(options, small_cluster());
}

// The host's ports, processes and timers, as the guard's effects leave them, and what may happen next.
struct Host {
  struct Process {
    NodeId node;
    Incarnation incarnation = 0;
    std::uint16_t port = 0;
  };

  test::Driven<Guard> guard{make_guard()};
  std::vector<std::uint16_t> leased;
  std::vector<Process> alive;
  std::vector<port::LeasePort> leases;  // Asked for, not answered.
  std::vector<port::StartProcess> starts;
  std::vector<TimerId> timers;
  std::vector<port::ProcessExited> told;  // Deaths that the guard knows of.
  std::vector<Input> replies;             // To the guard, on their way.
  std::array<Incarnation, 32> incarnations{};
  std::array<std::uint32_t, 32> deaths{};
  std::array<std::uint32_t, 32> leases_of{};
  std::uint64_t next_request = 1;

  void feed(const Input& input) {
    guard.feed(input);
    for (const Effect& effect : guard.all()) std::visit([&](const auto& typed) { carry_out(typed); }, effect);
    check();
  }

  void carry_out(const port::LeasePort& effect) { leases.push_back(effect); }
  void carry_out(const port::ReleasePort& effect) {
    const auto place = std::ranges::find(leased, effect.port);
    RC_ASSERT(place != leased.end());
    for (const Process& process : alive) RC_ASSERT(process.port != effect.port);
    for (const auto& start : starts) RC_ASSERT(start.port != effect.port);
    leased.erase(place);
  }
  void carry_out(const port::StartProcess& effect) {
    RC_ASSERT(std::ranges::find(leased, effect.port) != leased.end());
    for (const Process& process : alive) RC_ASSERT(process.node != effect.node);
    for (const auto& start : starts) RC_ASSERT(start.node != effect.node);
    ++leases_of[effect.node.value];
    starts.push_back(effect);
  }
  void carry_out(const port::ArmTimer& effect) {
    if (std::ranges::find(timers, effect.timer) == timers.end()) timers.push_back(effect.timer);
  }
  void carry_out(const port::DisarmTimer& effect) { std::erase(timers, effect.timer); }
  void carry_out(const port::Send& effect) {
    const auto reply =
        port::MessageIn{effect.to, 1, effect.to_slot, port::MessageKind::kReply, effect.request, to_record(Ack{})};
    if (effect.kind == port::MessageKind::kRequest) replies.push_back(reply);
  }
  template <class E>
  void carry_out(const E& /*effect*/) {}

  void check() const {
    std::vector<std::uint16_t> owned;
    for (const Process& process : alive) owned.push_back(process.port);
    std::ranges::stable_sort(owned);
    RC_ASSERT(std::ranges::adjacent_find(owned) == owned.end());
    for (const std::uint16_t port : owned) RC_ASSERT(std::ranges::find(leased, port) != leased.end());
  }

  [[nodiscard]] std::uint16_t free_port(Rng& rng) const {
    for (;;) {
      const auto port = static_cast<std::uint16_t>(10'000 + rng.draw_below(40));
      if (std::ranges::find(leased, port) == leased.end()) return port;
    }
  }

  template <class T>
  static T take(std::vector<T>& from, Rng& rng) {
    const std::size_t place = rng.draw_below(from.size());
    T taken = from[place];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(place));
    return taken;
  }

  void answer_lease(Rng& rng, bool ok) {
    const port::LeasePort asked = take(leases, rng);
    std::uint16_t port = 0;
    if (ok) leased.push_back(port = free_port(rng));
    feed(port::PortLeased{asked.op, ok ? Outcome::kOk : Outcome::kFailed, port});
  }
  // 0: the start fails; 1: it runs; 2: it runs and dies at once; 3: its death is told before its start.
  void answer_start(Rng& rng, std::uint64_t how) {
    const port::StartProcess asked = take(starts, rng);
    if (how == 0) return feed(port::ProcessStarted{asked.op, asked.node, 0, Outcome::kFailed});
    const Incarnation incarnation = ++incarnations[asked.node.value];
    if (how == 3) {
      ++deaths[asked.node.value];
      feed(port::ProcessExited{asked.node, incarnation, 1});
      return feed(port::ProcessStarted{asked.op, asked.node, incarnation, Outcome::kOk});
    }
    alive.push_back({asked.node, incarnation, asked.port});
    feed(port::ProcessStarted{asked.op, asked.node, incarnation, Outcome::kOk});
    if (how == 2) end_process(alive.size() - 1, false);
  }
  void end_process(std::size_t place, bool twice) {
    const Process ended = alive[place];
    alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(place));
    ++deaths[ended.node.value];
    told.push_back({ended.node, ended.incarnation, 1});
    feed(told.back());
    if (twice) feed(port::ProcessExited{ended.node, ended.incarnation, 1});
  }
  void ask_gateway(Rng& rng) {
    const Epoch epoch = static_cast<Epoch>(1 + rng.draw_below(3));
    const std::uint64_t id = rng.draw_below(4) == 0 ? next_request : ++next_request;  // Some are repeats.
    const bool reserves = rng.draw_below(2) == 0;
    const PortReservation* known = guard.protocol().reservations().find({kGateway, epoch});
    const std::uint16_t port = known != nullptr ? known->port : std::uint16_t{0};
    const Record body = reserves ? to_record(ReservePort{epoch}) : to_record(ReturnPort{epoch, port});
    feed(port::MessageIn{kGateway, 1, kGatewaySlot, port::MessageKind::kRequest, {id}, body});
  }
};

// One thing happens; nothing if what was drawn cannot.
void happen(Host& host, Rng& rng) {
  const std::uint64_t what = rng.draw_below(11);
  if (what <= 1 && !host.leases.empty()) {
    const bool ok = rng.draw_chance(3, 4);
    host.answer_lease(rng, ok);
  } else if (what <= 3 && !host.starts.empty()) {
    const std::uint64_t how = rng.draw_below(8);
    host.answer_start(rng, how < 4 ? how : 1);
  } else if (what == 4 && !host.alive.empty()) {
    const std::size_t place = rng.draw_below(host.alive.size());
    host.end_process(place, rng.draw_chance(1, 3));
  } else if (what <= 6 && !host.timers.empty()) {
    const TimerId timer = Host::take(host.timers, rng);
    host.feed(port::TimerFired{timer});
  } else if (what == 7 && !host.replies.empty()) {
    const Input reply = Host::take(host.replies, rng);
    if (rng.draw_chance(2, 3)) host.feed(reply);
  } else if (what == 8 && !host.told.empty()) {  // A report that comes again, long after.
    host.feed(host.told[rng.draw_below(host.told.size())]);
  } else if (what == 9) {  // A timer that nobody waits for.
    const Guard& guard = host.guard.protocol();
    for (const auto& [node, child] : guard.children()) {
      const bool waits = child.phase == ChildPhase::kWaiting;
      if (!waits) return host.feed(port::TimerFired{{node.value}});
    }
  } else {
    host.ask_gateway(rng);
  }
}

// From now on leases and starts succeed and messages arrive, until each child has had its last process.
void wind_down(Host& host, Rng& rng) {
  for (int steps = 0; steps < 2000; ++steps) {
    if (!host.leases.empty())
      host.answer_lease(rng, true);
    else if (!host.starts.empty())
      host.answer_start(rng, 1);
    else if (!host.replies.empty())
      host.feed(Host::take(host.replies, rng));
    else if (!host.timers.empty())
      host.feed(port::TimerFired{Host::take(host.timers, rng)});
    else if (!host.alive.empty())
      host.end_process(host.alive.size() - 1, false);
    else
      break;
  }
  for (Epoch epoch = 1; epoch <= 3; ++epoch) {
    const PortReservation* known = host.guard.protocol().reservations().find({kGateway, epoch});
    if (known == nullptr) continue;
    host.feed(port::MessageIn{kGateway,
                              1,
                              kGatewaySlot,
                              port::MessageKind::kRequest,
                              {++host.next_request},
                              to_record(ReturnPort{epoch, known->port})});
  }
}

RC_GTEST_PROP(Guard, KeepsOneOwnerAPortAndLeaksNothing, ()) {
  Rng rng(*rc::gen::arbitrary<std::uint64_t>());
  const int steps = *rc::gen::inRange(0, 400);
  Host host;
  host.feed(port::Started{1, 0, 1});
  for (int i = 0; i < steps; ++i) {
    happen(host, rng);
    if (rng.draw_below(16) == 0) RC_ASSERT(host.guard.reload(make_guard()));
  }
  wind_down(host, rng);
  RC_ASSERT(host.alive.empty());
  RC_ASSERT(host.leased.empty());
  RC_ASSERT(host.timers.empty());
  for (const auto& [node, child] : host.guard.protocol().children()) {
    RC_ASSERT(child.phase == ChildPhase::kEnded);
    // The first start and every restart had a lease of its own, and every death but the last a successor.
    RC_ASSERT(host.leases_of[node.value] == kMaxRestarts + 1);
    RC_ASSERT(host.deaths[node.value] <= kMaxRestarts + 1);
  }
}

}  // namespace
}  // namespace areal::proto
