// INV-10, INV-PORT-RELEASE-AFTER-EXIT and INV-11: ports have one live owner, come back after it, and nothing is left.
//
// What a host hands out is the host's; it counts when a guard accepts it (LeaseChanged). A guard that restarts lost its
// leases (the machine gives them back), so that what its predecessor leased is gone, and so is what it knew of its
// children. A lease that was never bound is a reservation; who made it may give it back while it lives.
#pragma once
#include "sim/check/flat.h"
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class LeaseJudge final : public JudgeOf<LeaseJudge> {
 public:
  explicit LeaseJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "lease"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;
  void at_end(bool finished, Violations& out) override;

 private:
  struct Place {
    HostId host;
    std::uint16_t port = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct Lease {
    NodeId holder;
    Incarnation incarnation = 0;
    NodeId guard;
    Incarnation guard_incarnation = 0;
    bool bound = false;  // A process runs on it; otherwise it is only kept for its holder.
    std::uint64_t seq = 0;
  };
  struct Process {
    Incarnation incarnation = 0;
    bool alive = false;
    bool starting = false;  // A start was asked for and has not been answered.
    Incarnation guard_incarnation = 0;
    std::uint64_t seq = 0;
  };
  void on_lease(const port::TraceEvent& event, const port::LeaseChanged& lease, Violations& out);
  void on_process(const port::TraceEvent& event, const port::ProcessChanged& changed, Violations& out);
  [[nodiscard]] bool is_alive(NodeId node, Incarnation incarnation) const;
  void report(const port::TraceEvent& event, InvariantId invariant, std::uint64_t related, const std::string& why,
              Violations& out) const;

  SetupPtr setup_;
  Flat<Place, Lease> leases_;
  Flat<NodeId, Process> processes_;
  port::TraceEvent last_;
};

}  // namespace areal::sim
