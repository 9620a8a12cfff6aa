// One host's ports and children: leases, starts, reports, replaces; no port is given back before its holder is dead.
//
// A child is started with a port leased for it. When it is confirmed dead, the members are told, its port is given
// back, and after a delay that doubles with every restart a replacement starts with a port of its own, until the child
// has used up its restarts. There is at most one process a child at any time. The gateway, for an epoch of its pair,
// and the controller, for a training epoch, may reserve a port for the meeting; asked again for the same epoch they get
// the same port (spec/transfer.md 5.2, 5.5, 5.8).
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/table.h"
#include "engine/proto/callee.h"
#include "engine/proto/caller.h"
#include "engine/proto/cluster.h"
#include "engine/proto/input.h"
#include "engine/proto/messages.h"
#include "engine/proto/waits.h"

namespace areal::proto {

// Who is told of every start and death of an engine or training rank.
struct GuardListener {
  NodeId node;
  SlotId slot;
};
// The gateway, the router and the training loop.
std::vector<GuardListener> membership_listeners(const ClusterMap& cluster);

struct GuardOptions {
  HostId host;
  std::vector<NodeId> children;           // Each once.
  std::vector<GuardListener> listeners;   // As membership_listeners() says, but in tests.
  Duration restart_delay{1'000'000'000};  // Before the first replacement; doubles up to 64 times itself.
  Duration lease_retry{1'000'000'000};    // After a failed lease; doubles likewise.
  std::uint32_t max_restarts = 16;        // Of one child, counting starts that failed.
  std::size_t reservation_limit = 64;     // Epochs with a reserved port; a further one is refused.
  CallerOptions calls{};
};

enum class ChildPhase : std::uint8_t { kLeasing, kStarting, kAlive, kWaiting, kEnded };

// INVARIANT: port is not 0 exactly in kStarting and kAlive.
struct GuardChild {
  ChildPhase phase = ChildPhase::kLeasing;
  Incarnation incarnation = 0;  // The last one that is known.
  std::uint16_t port = 0;
  OpId op;  // The lease or start under way.
  std::uint32_t restarts = 0;
  std::uint32_t lease_failures = 0;  // Since the last lease that was granted.
  AREAL_FIELDS(phase, incarnation, port, op, restarts, lease_failures)
};

// Askers count their epochs on their own.
struct ReservationKey {
  NodeId from;
  Epoch epoch = 0;
  constexpr auto operator<=>(const ReservationKey&) const = default;
  AREAL_FIELDS(from, epoch)
};

struct PortReservation {
  OpId op;  // The lease under way; 0 when it is granted.
  std::uint16_t port = 0;
  SlotId slot;
  Incarnation incarnation = 0;
  RequestId request;  // To answer when the lease is granted.
  AREAL_FIELDS(op, port, slot, incarnation, request)
};

// The newest return of an asker: what it asked before that, for that epoch or earlier ones, is late.
struct ReturnMark {
  Epoch epoch = 0;
  RequestId request;
  AREAL_FIELDS(epoch, request)
};

class Guard {
 public:
  static constexpr std::string_view kName = "guard";

  Guard(GuardOptions options, ClusterMap cluster);

  void step(const Input& input, Outbox& out);
  void list_waits(WaitList& waits) const;

  [[nodiscard]] const Table<NodeId, GuardChild>& children() const { return children_; }
  [[nodiscard]] const Table<ReservationKey, PortReservation>& reservations() const { return reservations_; }

  AREAL_FIELDS(children_, reservations_, returned_, last_op_, calls_, callee_)

 private:
  void on_started(const port::Started& started, Outbox& out);
  void on_message(const port::MessageIn& message, Outbox& out);
  void on_timer(const port::TimerFired& fired, Outbox& out);
  void on_leased(const port::PortLeased& leased, Outbox& out);
  void on_process_started(const port::ProcessStarted& started, Outbox& out);
  void on_exited(const port::ProcessExited& exited, Outbox& out);
  void on(const port::MessageIn& message, const ReservePort& reserve, Outbox& out);
  void on(const port::MessageIn& message, const ReturnPort& returned, Outbox& out);

  void lease_child(NodeId node, Outbox& out);
  void grant_child(NodeId node, const port::PortLeased& leased, bool granted, Outbox& out);
  void grant_reservation(const ReservationKey& key, const port::PortLeased& leased, bool granted, Outbox& out);
  void release_child(NodeId node, Outbox& out);
  void replace_later(NodeId node, Outbox& out);
  template <RecordType T>
  void announce(const T& news, Outbox& out);
  // Whether a message that was given up still says the last that is known of its node.
  [[nodiscard]] bool is_news(const Record& body) const;
  // A listener has not acknowledged yet that the child died.
  [[nodiscard]] bool death_is_untold(NodeId node) const;
  [[nodiscard]] bool is_worker(NodeId node) const;
  [[nodiscard]] bool may_reserve(NodeId node) const { return node == cluster_.gateway || node == cluster_.controller; }
  [[nodiscard]] bool holds(std::uint16_t port) const;
  void note_lease(std::uint16_t port, port::LeaseState state, NodeId holder, Incarnation incarnation,
                  Outbox& out) const;
  void check_invariants() const;

  // Set at construction; not state.
  GuardOptions options_;
  ClusterMap cluster_;

  Table<NodeId, GuardChild> children_;
  Table<ReservationKey, PortReservation> reservations_;
  Table<NodeId, ReturnMark> returned_{2};  // By asker.
  std::uint64_t last_op_ = 0;
  Caller calls_;
  Callee callee_;
};

}  // namespace areal::proto
