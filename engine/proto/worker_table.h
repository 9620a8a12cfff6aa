// Who is alive, in which incarnation, as far as the gateway can know; by transfer rank.
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "engine/base/state.h"
#include "engine/proto/cluster.h"

namespace areal::proto {

struct Worker {
  NodeId node{};
  Incarnation incarnation = 0;  // The latest known; 0: never started.
  bool alive = false;
  AREAL_FIELDS(node, incarnation, alive)
};

class WorkerTable {
 public:
  explicit WorkerTable(const ClusterMap& cluster) {
    for (std::uint32_t rank = 0; rank < cluster.world(); ++rank) {
      workers_.push_back({cluster.node_of_transfer_rank(rank), 0, false});
    }
  }

  [[nodiscard]] std::optional<std::uint32_t> rank_of(NodeId node) const {
    const auto place = std::ranges::find(workers_, node, &Worker::node);
    if (place == workers_.end()) return std::nullopt;
    return static_cast<std::uint32_t>(place - workers_.begin());
  }
  [[nodiscard]] const Worker& at(std::uint32_t rank) const { return workers_[rank]; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(workers_.size()); }
  [[nodiscard]] bool all_alive() const { return std::ranges::all_of(workers_, &Worker::alive); }
  // Whether a message of that incarnation is of the process we know; an older one's is not.
  [[nodiscard]] bool is_current(std::uint32_t rank, Incarnation incarnation) const {
    return incarnation >= workers_[rank].incarnation;
  }

  // True if it was alive until now.
  bool exited(std::uint32_t rank, Incarnation incarnation) {
    Worker& worker = workers_[rank];
    if (incarnation < worker.incarnation) return false;
    worker.incarnation = incarnation;
    return std::exchange(worker.alive, false);
  }
  // True if an earlier incarnation, believed alive, must have died without our knowing.
  bool started(std::uint32_t rank, Incarnation incarnation) {
    Worker& worker = workers_[rank];
    if (incarnation <= worker.incarnation) return false;
    worker.incarnation = incarnation;
    return std::exchange(worker.alive, true);
  }

  AREAL_FIELDS(workers_)

 private:
  std::vector<Worker> workers_;
};

}  // namespace areal::proto
