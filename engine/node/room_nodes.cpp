// Which protocols each node hosts, and with which settings of the scenario.
#include <algorithm>
#include <limits>

#include "engine/node/room_plan.h"
#include "engine/proto/engine_server.h"
#include "engine/proto/gateway.h"
#include "engine/proto/guard.h"
#include "engine/proto/pause_gate.h"
#include "engine/proto/rollout_pool.h"
#include "engine/proto/router.h"
#include "engine/proto/strict_drain.h"
#include "engine/proto/tensor_store.h"
#include "engine/proto/train_loop.h"
#include "engine/proto/train_rank.h"
#include "engine/proto/update_receiver.h"
#include "engine/proto/update_sender.h"

namespace areal::node {
namespace {

constexpr std::uint64_t kGradientBytes = 4;  // fp32, of one element that a rank holds.

proto::CallerOptions calls_of(const RoomPlan& room) {
  proto::CallerOptions calls;
  calls.timeout = room.scenario.work.request_timeout;
  calls.tries = room.scenario.work.request_tries;
  return calls;
}

proto::MemberOptions member_of(const RoomPlan& room, const RoomNode& node) {
  proto::MemberOptions options;
  options.role = node.role;
  const bool infers = node.role == port::Role::kEngine;
  options.role_rank = infers ? node.infer_rank : node.train_rank;
  options.role_world = infers ? room.cluster.engine_world : room.cluster.train_world();
  options.engine = node.engine;
  options.plan = std::shared_ptr<const proto::MemberPlan>(room.members, &room.members->at(node.transfer_rank));
  options.meta = infers ? room.infer_meta : room.train_meta;
  // A sender stages all that it sends, packed; a receiver all that it will write, since nothing is applied unverified.
  options.staging_bytes = options.plan->bytes();
  const config::DeltaSettings& delta = room.scenario.train.delta;
  options.delta = delta.enabled;
  options.anchor_interval = static_cast<std::uint64_t>(delta.anchor_interval);
  if (!infers) {
    const proto::ReconstructPlan& plan = room.reconstruct->ranks[node.train_rank];
    options.reconstruct = std::shared_ptr<const proto::ReconstructPlan>(room.reconstruct, &plan);
    options.gradient_bytes = plan.elements * kGradientBytes;
  }
  options.init_timeout = room.scenario.work.init_timeout;
  options.update_timeout = room.scenario.work.update_timeout;
  options.repeats = room.policies.repeats;
  options.may_enter = room.policies.may_enter;
  options.policies = room.policies.delta;
  return options;
}

std::vector<ProtocolBox> gateway_protocols(const RoomPlan& room) {
  proto::GatewayOptions options;
  options.calls = calls_of(room);
  options.attempt_timeout = room.scenario.work.update_timeout + 30_s;
  options.max_attempts = room.scenario.work.max_attempts;
  options.delta = room.scenario.train.delta.enabled;
  options.plans = room.members;
  std::vector<ProtocolBox> slots;
  slots.emplace_back(proto::Gateway(std::move(options), room.cluster));
  return slots;
}

std::vector<ProtocolBox> controller_protocols(const RoomPlan& room) {
  const config::WorkSettings& work = room.scenario.work;
  const config::RolloutSettings& rollout = room.scenario.rollout;
  proto::TrainLoopOptions loop;
  loop.updates = work.updates;
  loop.pause_around_update = work.pause_around_update;
  loop.update_retries = work.update_retries;
  loop.checkpoint_every = room.scenario.train.checkpoint_every;
  loop.batch_groups = rollout.batch;
  loop.calls.timeout = work.request_timeout;
  // Asks for as long as the gateway may take for one request with all its attempts.
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max() - 60;
  const auto of_attempt = (work.update_timeout + work.init_timeout).ns / work.request_timeout.ns + 1;
  std::uint64_t tries = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(of_attempt), work.max_attempts, &tries)) tries = kMost;
  loop.calls.tries = static_cast<std::uint32_t>(std::min(tries, kMost) + 60);
  proto::RolloutPoolOptions pool;
  pool.limits = {rollout.concurrent, rollout.batch, rollout.staleness};
  pool.samples = rollout.samples;
  pool.max_new_tokens = rollout.max_new_tokens;
  pool.timeout = work.request_timeout;
  pool.tries = work.request_tries;
  proto::PauseGateOptions gate;
  gate.mode = rollout.pause;
  gate.grace = rollout.grace;
  gate.calls = calls_of(room);
  std::vector<ProtocolBox> slots;
  slots.emplace_back(proto::TrainLoop(loop, room.cluster, room.policies.after_update));
  slots.emplace_back(proto::RolloutPool(pool, room.cluster, room.policies.recovered));
  slots.emplace_back(proto::PauseGate(gate, room.cluster, room.policies.pause));
  slots.emplace_back(proto::StrictDrain({.calls = calls_of(room)}, room.cluster));
  return slots;
}

std::vector<ProtocolBox> trainer_protocols(const RoomPlan& room, const RoomNode& node) {
  std::vector<ProtocolBox> slots;
  slots.emplace_back(proto::UpdateSender(member_of(room, node)));
  proto::TrainRankOptions options;
  options.rank = node.train_rank;
  options.minibatches = room.scenario.train.delta.minibatches;
  options.calls = calls_of(room);
  slots.emplace_back(proto::TrainRank(options, room.cluster, room.policies.reduces));
  return slots;
}

std::vector<ProtocolBox> engine_protocols(const RoomPlan& room, const RoomNode& node) {
  const bool serves = node.infer_rank == 0;
  std::vector<ProtocolBox> slots;
  slots.emplace_back(proto::UpdateReceiver(member_of(room, node), serves));
  if (serves) {
    proto::EngineServerOptions options;
    options.engine = node.engine;
    options.reports = calls_of(room);
    slots.emplace_back(proto::EngineServer(options, room.cluster, room.policies.lock));
  }
  return slots;
}

std::vector<ProtocolBox> guard_protocols(const RoomPlan& room, const RoomNode& node) {
  proto::GuardOptions options;
  options.host = node.host;
  options.listeners = proto::membership_listeners(room.cluster);
  options.calls = calls_of(room);
  for (const RoomNode& child : room.nodes) {
    if (child.starter == node.id) options.children.push_back(child.id);
  }
  std::vector<ProtocolBox> slots;
  slots.emplace_back(proto::Guard(std::move(options), room.cluster));
  return slots;
}

}  // namespace

std::vector<ProtocolBox> protocols_of(const RoomPlan& room, const RoomNode& node) {
  switch (node.role) {
    case port::Role::kTrainer:
      return trainer_protocols(room, node);
    case port::Role::kEngine:
      return engine_protocols(room, node);
    case port::Role::kGateway:
      return gateway_protocols(room);
    case port::Role::kController:
      return controller_protocols(room);
    case port::Role::kRouter: {
      std::vector<ProtocolBox> slots;
      slots.emplace_back(proto::Router(room.cluster, room.policies.eligible));
      return slots;
    }
    case port::Role::kStore: {
      std::vector<ProtocolBox> slots;
      slots.emplace_back(proto::TensorStore());
      return slots;
    }
    case port::Role::kGuard:
      return guard_protocols(room, node);
  }
  return {};
}

std::vector<std::string> slot_names(const RoomPlan& room, const RoomNode& node) {
  std::vector<std::string> names;
  for (const ProtocolBox& slot : protocols_of(room, node)) names.emplace_back(slot.name());
  return names;
}

}  // namespace areal::node
