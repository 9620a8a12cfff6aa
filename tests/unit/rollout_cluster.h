// A small cluster for tests of the rollout side: engines of two ranks each, two trainers, one of everything else.
#pragma once
#include <cstdint>

#include "engine/proto/cluster.h"
#include "engine/proto/messages.h"

namespace areal::test {

inline constexpr NodeId kController{1};
inline constexpr NodeId kRouter{2};
inline constexpr NodeId kStore{3};
inline constexpr NodeId kGateway{4};
inline constexpr NodeId kGuard{5};
inline constexpr NodeId kStranger{99};

constexpr NodeId rank_node(std::uint64_t engine, std::uint64_t rank) { return {100 + engine * 10 + rank}; }
constexpr NodeId server_node(std::uint64_t engine) { return rank_node(engine, 0); }
constexpr NodeId trainer_node(std::uint64_t rank) { return {50 + rank}; }

inline proto::ClusterMap rollout_cluster(std::uint32_t engines) {
  proto::ClusterMap cluster;
  cluster.trainers = {trainer_node(0), trainer_node(1)};
  for (std::uint32_t engine = 0; engine < engines; ++engine) {
    cluster.engine_ranks.push_back(rank_node(engine, 0));
    cluster.engine_ranks.push_back(rank_node(engine, 1));
  }
  cluster.engines = engines;
  cluster.engine_world = 2;
  cluster.data_heads = {0, 1};
  cluster.gateway = kGateway;
  cluster.controller = kController;
  cluster.router = kRouter;
  cluster.store = kStore;
  cluster.guards = {kGuard};
  cluster.master_guard = kGuard;
  return cluster;
}

}  // namespace areal::test
