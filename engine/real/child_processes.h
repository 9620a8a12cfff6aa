// The children of a guard's process: areal-node processes on ports that are leased on this machine.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "engine/node/room_plan.h"
#include "engine/real/host/address_book.h"
#include "engine/real/host/loop.h"
#include "engine/real/host/os_process.h"
#include "engine/real/host/port_lease.h"
#include "engine/real/host/process_backend.h"

namespace areal::real {

// A start is told when the child can be written to: when it has said in the run's folder where it listens.
//
// Called by the loop only. `loop` and `room` outlive it. Children that live when it goes are killed.
class ChildProcesses final : public host::ProcessBackend {
 public:
  // `seed`: where ports are looked for first.
  ChildProcesses(host::Loop& loop, const node::RoomPlan& room, std::filesystem::path folder, std::uint64_t seed);

  std::uint16_t lease_port() override;
  void release_port(std::uint16_t port) override { leases_.release(port); }
  void start(NodeId node, std::uint16_t port, std::function<void(Incarnation)> started,
             std::function<void(Incarnation, std::int32_t)> exited) override;
  void stop(NodeId node, Duration grace) override;

  // Tells all to end and waits, some seconds at most, until they have.
  void end_all();

 private:
  struct Child {
    NodeId node{};
    Incarnation incarnation = 0;
    std::unique_ptr<host::OsProcess> process;
    std::function<void(Incarnation)> started;  // None once it was told.
    std::function<void(Incarnation, std::int32_t)> exited;
    Instant since{};
  };

  void look();
  [[nodiscard]] bool is_up(const Child& child);

  host::Loop& loop_;
  const node::RoomPlan& room_;
  std::filesystem::path folder_;
  host::RunDirectory book_;
  std::uint64_t drawn_ = 0;
  host::PortLeases leases_;
  std::vector<Child> children_;
  std::vector<Incarnation> incarnations_;  // Started so far, by node.
  bool looking_ = false;
};

}  // namespace areal::real
