#include "engine/node/room_plan.h"

#include <algorithm>

#include "engine/config/scenario_cluster.h"
#include "engine/delta/adamw.h"
#include "engine/proto/messages.h"
#include "engine/proto/sharding.h"

namespace areal::node {
namespace {

constexpr std::uint64_t kOptimizerBytes = 12;  // fp32 master weights and two moments, of one trained element.

// The rename map: the first `count` tensors carry another name in the engine.
std::shared_ptr<const proto::NamePolicy> rename_map(const config::ModelSpec& model, std::uint32_t count) {
  std::vector<proto::RenamePolicy::Rename> renames;
  for (std::uint32_t i = 0; i < count && i < model.parameters.size(); ++i) {
    const std::string& name = model.name_of(model.parameters[i]);
    renames.push_back({name, name + "_engine"});
  }
  return std::make_shared<const proto::RenamePolicy>(std::move(renames));
}

class RoomBuilder {
 public:
  RoomBuilder(const config::Scenario& scenario, const RoomPolicies& policies) {
    room_.scenario = scenario;
    room_.policies = policies;
  }

  Result<RoomPlan> build() {
    AREAL_TRY(read_layouts());
    place_nodes();
    AREAL_TRY(plan_transfers());
    describe();
    return std::move(room_);
  }

 private:
  Status read_layouts() {
    auto train = config::parse_allocation(room_.scenario.train.backend);
    if (!train) return train.error();
    auto infer = config::parse_allocation(room_.scenario.rollout.backend);
    if (!infer) return infer.error();
    room_.train = train->parallel;
    room_.infer = infer->parallel;
    room_.cluster.engines = room_.infer.dp;
    room_.cluster.engine_world = room_.infer.tp * room_.infer.pp;
    room_.infer.dp = 1;
    auto model = config::scenario_model(room_.scenario.model);
    if (!model) return model.error();
    room_.model = std::move(*model);
    return Unit{};
  }

  RoomNode& add(const std::string& name, port::Role role, std::uint64_t host, NodeId starter) {
    RoomNode node;
    node.id = NodeId{room_.nodes.size() + 1};
    node.name = name;
    node.role = role;
    node.host = HostId{host};
    node.starter = starter;
    return room_.nodes.emplace_back(std::move(node));
  }

  // Host 0 holds the trainers and the services; every engine has a host of its own.
  void place_nodes() {
    proto::ClusterMap& cluster = room_.cluster;
    room_.hosts = 1 + cluster.engines;
    cluster.gateway = add("gateway", port::Role::kGateway, 0, {}).id;
    cluster.controller = add("controller", port::Role::kController, 0, {}).id;
    cluster.router = add("router", port::Role::kRouter, 0, {}).id;
    cluster.store = add("store", port::Role::kStore, 0, {}).id;
    for (std::uint32_t host = 0; host < room_.hosts; ++host) {
      cluster.guards.push_back(add("guard." + std::to_string(host), port::Role::kGuard, host, {}).id);
    }
    cluster.master_guard = cluster.guards[1];
    const std::uint32_t infer_world = cluster.engines * cluster.engine_world;
    for (std::uint32_t rank = 0; rank < room_.train.world_size(); ++rank) {
      RoomNode& node = add("trainer." + std::to_string(rank), port::Role::kTrainer, 0, cluster.guards[0]);
      node.train_rank = rank;
      node.transfer_rank = infer_world + rank;
      cluster.trainers.push_back(node.id);
      // The first rank of each data-parallel copy fetches its shards.
      if (rank % (room_.train.tp * room_.train.cp) == 0 && room_.train.pp == 1) cluster.data_heads.push_back(rank);
    }
    if (cluster.data_heads.empty()) cluster.data_heads.push_back(0);
    for (std::uint32_t engine = 0; engine < cluster.engines; ++engine) {
      for (std::uint32_t rank = 0; rank < cluster.engine_world; ++rank) {
        RoomNode& node = add("engine." + std::to_string(engine) + ".rank." + std::to_string(rank), port::Role::kEngine,
                             1 + engine, cluster.guards[1 + engine]);
        node.engine = EngineId{engine};
        node.infer_rank = rank;
        node.transfer_rank = engine * cluster.engine_world + rank;
        cluster.engine_ranks.push_back(node.id);
      }
    }
  }

  Status plan_transfers() {
    const proto::ClusterMap& cluster = room_.cluster;
    const auto right_names = rename_map(room_.model, room_.scenario.model.renamed);
    if (room_.policies.names == nullptr) room_.policies.names = right_names;
    auto train = proto::training_metas(room_.model, room_.train);
    if (!train) return train.error();
    auto infer = proto::inference_metas(room_.model, room_.infer);
    if (!infer) return infer.error();
    infer->names = engine_names(room_.model, *right_names);
    proto::PlanOptions options;
    options.world = {cluster.infer_world(), cluster.train_world(), cluster.engines};
    auto plan = proto::build_transfer_plan(*train, *infer, options, *room_.policies.names);
    if (!plan) return plan.error();
    room_.plan = std::move(*plan);
    std::vector<std::uint32_t> aliases;
    for (const config::Alias& alias : room_.model.aliases) aliases.push_back(alias.name);
    room_.members =
        std::make_shared<const std::vector<proto::MemberPlan>>(proto::member_plans(*room_.plan, *infer, aliases));
    count_memory(*train, *infer);
    room_.reconstruct = std::make_shared<const proto::ReconstructPlans>(
        proto::reconstruct_plans(room_.model, *train, room_.scenario.train.delta.window));
    return make_tiny(*right_names);
  }

  void count_memory(const proto::MetaSet& train, const proto::MetaSet& infer) {
    room_.model_bytes.assign(room_.cluster.world(), 0);
    const std::uint32_t infer_world = room_.cluster.infer_world();
    for (const proto::ShardMeta& shard : infer.shards) {
      for (std::uint32_t engine = 0; engine < room_.cluster.engines; ++engine) {
        room_.model_bytes[engine * room_.cluster.engine_world + shard.global_rank] += shard.shape.elements() * 2;
      }
    }
    const std::uint64_t copies = room_.train.dp;
    for (const proto::ShardMeta& shard : train.shards) {  // The optimizer is distributed over data-parallel copies.
      room_.model_bytes[infer_world + shard.global_rank] +=
          shard.shape.elements() * 2 + shard.shape.elements() * kOptimizerBytes / copies;
    }
  }

  Status make_tiny(const proto::NamePolicy& right_names) {
    const config::TrainSettings& train = room_.scenario.train;
    auto optimizer =
        delta::parse_adamw({train.learning_rate, train.weight_decay, train.beta1, train.beta2, train.epsilon});
    if (!optimizer) return optimizer.error();
    TinyRequest request;
    request.train = room_.train;
    request.infer = room_.infer;
    request.engines = room_.cluster.engines;
    request.live_all = room_.scenario.model.live_all;
    request.optimizer = *optimizer;
    request.engine_names = &right_names;
    request.reconstruct = room_.reconstruct.get();
    auto tiny = make_tiny_shape(room_.model, request, *room_.policies.names);
    if (!tiny) return tiny.error();
    room_.tiny = std::move(*tiny);
    return Unit{};
  }

  void describe() {
    room_.train_meta = hash_text(room_.scenario.train.backend, room_.model.parameters.size());
    room_.infer_meta = hash_text(room_.scenario.rollout.backend, room_.model.parameters.size());
  }

  RoomPlan room_;
};

}  // namespace

const RoomNode* RoomPlan::find(std::string_view name) const {
  const auto place = std::ranges::find(nodes, name, &RoomNode::name);
  return place != nodes.end() ? &*place : nullptr;
}

Result<RoomPlan> plan_room(const config::Scenario& scenario, const RoomPolicies& policies) {
  return RoomBuilder(scenario, policies).build();
}

void add_room_kinds(KindTable& kinds) {
  port::add_kinds(kinds);
  proto::add_kinds(kinds);
  proto::add_lock_kinds(kinds);
}

}  // namespace areal::node
