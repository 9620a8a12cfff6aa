// The ports of one real process of a run, wired: store, groups, links and children around RealPorts.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>

#include "engine/real/child_processes.h"
#include "engine/real/host/links.h"
#include "engine/real/host/real_ports.h"
#include "engine/real/run_paper.h"

namespace areal::real {

// Which process of the run.
struct ProcessPlace {
  std::filesystem::path folder;  // Of the run.
  RunPaper paper;
  NodeId node{};
  Incarnation incarnation = 1;
  std::uint16_t port = 0;  // To listen on; 0: any free one.
};

// What the process brings along; all outlive the ports. `faults` may be null.
struct ProcessParts {
  host::Loop* loop = nullptr;
  const node::RoomPlan* room = nullptr;
  node::Node* node = nullptr;
  port::TraceSink* sink = nullptr;
  host::NodeFaults* faults = nullptr;
};

// Called by the loop only, and by its thread before it runs and after it has ended.
class ProcessPorts {
 public:
  // Listens, and says so in the run's folder. Every error is the system's.
  static Result<std::unique_ptr<ProcessPorts>> open(const ProcessPlace& place, const ProcessParts& parts);
  ProcessPorts(const ProcessPorts&) = delete;
  ProcessPorts& operator=(const ProcessPorts&) = delete;
  // Children that live are killed. REQUIRES: the loop does not run any more.
  ~ProcessPorts();

  host::RealPorts& ports() { return *ports_; }
  ChildProcesses& children() { return *children_; }

 private:
  ProcessPorts() = default;
  void make_ports(const ProcessPlace& place, const ProcessParts& parts);
  Status connect(const ProcessPlace& place, const ProcessParts& parts);

  // Taken down in reverse: groups and links first, so that nothing comes in any more.
  std::unique_ptr<host::FileStore> store_;
  std::unique_ptr<ChildProcesses> children_;
  std::unique_ptr<host::RunDirectory> book_;
  std::unique_ptr<host::RealPorts> ports_;
  std::unique_ptr<host::Links> links_;
  std::unique_ptr<host::GroupBackend> groups_;
};

}  // namespace areal::real
