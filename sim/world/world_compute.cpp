// Devices: when their operations run, for as long as the configured model would take.
#include <algorithm>

#include "engine/node/tiny_decode.h"
#include "sim/world/transfer_time.h"
#include "sim/world/world.h"

namespace areal::sim {
namespace {

using What = WorldEvent::What;
using port::ComputeKind;

constexpr Duration kFenceTime = 1_ms;
constexpr Duration kKernelTime = 100_us;
constexpr Duration kRewardTime = 50_ms;

bool is_apply(ComputeKind what) { return what == ComputeKind::kApply || what == ComputeKind::kApplyDelta; }

}  // namespace

std::uint64_t World::window_bytes(const RoomNode& place, std::uint64_t window) const {
  const auto& windows = room_->reconstruct->ranks[place.train_rank].windows;
  return window < windows.size() ? windows[window].bytes() : 0;
}

Duration World::duration_of(NodeId node, const port::StartCompute& asked) const {
  const RoomNode& place = room_->node(node);
  const config::DeviceSettings& devices = room_->scenario.devices;
  switch (asked.what) {
    case ComputeKind::kLoadModel:
      return devices.load_time;
    case ComputeKind::kGradients:
      return room_->scenario.train.step_time;
    case ComputeKind::kPack:
    case ComputeKind::kVerify:
    case ComputeKind::kApply:
      return kFenceTime + time_of_bytes(room_->members->at(place.transfer_rank).bytes(), devices.copy_bandwidth);
    case ComputeKind::kTrainStep:
    case ComputeKind::kCapture:
    case ComputeKind::kPackDelta:
    case ComputeKind::kSaveCheckpoint:  // A copy on the host; it is written while training goes on.
      return kFenceTime + time_of_bytes(room_->model_bytes[place.transfer_rank], devices.copy_bandwidth);
    case ComputeKind::kApplyDelta:
      return kFenceTime + time_of_bytes(replicas_[place.transfer_rank].landed_bytes(), devices.copy_bandwidth);
    case ComputeKind::kInvert:
    case ComputeKind::kCompare:
      return kKernelTime + time_of_bytes(window_bytes(place, asked.amount), devices.copy_bandwidth);
    case ComputeKind::kLoadCheckpoint:
      return devices.load_time;
    case ComputeKind::kFence:
    case ComputeKind::kMarkSynced:
      return kFenceTime;
    case ComputeKind::kReward:
      return kRewardTime;
    default:
      break;
  }
  return {};
}

void World::start_compute(NodeId node, SlotId slot, const port::StartCompute& asked, const node::Origin& origin) {
  SimDevice& device = devices_[node.value - 1];
  SimCompute compute;
  compute.number = ++numbers_;
  compute.slot = slot;
  compute.origin = origin;
  compute.asked = asked;
  device.running.push_back(compute);
  if (asked.what == ComputeKind::kGenerate) {
    begin_generation(node, device.running.back());
  } else {
    run_next(node);
  }
}

// Starts the first operation in line, unless one runs.
void World::run_next(NodeId node) {
  for (SimCompute& compute : devices_[node.value - 1].running) {
    if (compute.asked.what == ComputeKind::kGenerate) continue;
    if (compute.event != 0) return;
    compute.started = now_;
    compute.event = post(duration_of(node, compute.asked), WorldEvent{.what = What::kComputeEnds,
                                                                      .node = node,
                                                                      .incarnation = node_of(node).incarnation(),
                                                                      .number = compute.number,
                                                                      .erased = {}});
    const RoomNode& place = room_->node(node);
    if (is_apply(compute.asked.what)) weights_changed(place.engine);
    return;
  }
}

std::uint64_t World::tokens_left(const SimCompute& compute) const {
  return node::tokens_of_sample(room_->scenario.rollout, decisions_.seed(), compute.asked);
}

std::uint64_t World::tokens_so_far(const SimCompute& compute) const {
  if (compute.parked) return 0;
  const std::int64_t ns = (now_ - compute.started).ns;
  const std::uint64_t made =
      static_cast<std::uint64_t>(ns) * room_->scenario.rollout.tokens_per_second / 1'000'000'000U;
  return std::min(made, tokens_left(compute) - compute.produced);
}

void World::begin_generation(NodeId node, SimCompute& compute) {
  const RoomNode& place = room_->node(node);
  compute.started = now_;
  compute.parked = false;
  const bool can_run = place.role == port::Role::kEngine && !engines_[place.engine.value].broken;
  const std::uint64_t tokens = tokens_left(compute) - compute.produced;
  const std::uint64_t rate = room_->scenario.rollout.tokens_per_second;
  const Duration lasts = can_run ? Duration{static_cast<std::int64_t>((tokens * 1'000'000'000U + rate - 1) / rate)}
                                 : room_->scenario.links.reset_after;
  compute.event = post(lasts, WorldEvent{.what = What::kComputeEnds,
                                         .node = node,
                                         .incarnation = node_of(node).incarnation(),
                                         .number = compute.number,
                                         .a = can_run ? 0U : 1U,
                                         .erased = {}});
}

Digest128 World::engine_digest(EngineId engine) const {
  DigestSum sum;
  const std::uint32_t ranks = room_->cluster.engine_world;
  for (std::uint32_t i = 0; i < ranks; ++i) sum.add(replicas_[engine.value * ranks + i].held());
  return sum.total;
}

// A segment of a generation ends. Tokens made while weights changed belong to no version: their digest says so.
port::ComputeDone World::generated(NodeId node, const SimCompute& compute, port::Outcome outcome) const {
  port::ComputeDone done{compute.asked.op, ComputeKind::kGenerate, outcome, 0, tokens_so_far(compute), 0, {}};
  done.digest = engine_digest(room_->node(node).engine);
  if (compute.mixed) done.digest = chain_digest(done.digest, {1, 1});
  if (engines_[room_->node(node).engine.value].broken) done.count = 0;  // Its ranks do not answer each other.
  return done;
}

void World::stop_compute(NodeId node, OpId op) {
  SimDevice& device = devices_[node.value - 1];
  const auto place = std::ranges::find_if(device.running, [&](const SimCompute& one) { return one.asked.op == op; });
  if (place == device.running.end()) return;
  const SimCompute compute = *place;
  const bool ran = compute.event != 0;
  queue_.cancel(compute.event);
  device.running.erase(place);
  port::ComputeDone done{op, compute.asked.what, port::Outcome::kAborted, 0, 0, 0, {}};
  if (compute.asked.what == ComputeKind::kGenerate) {
    done = generated(node, compute, port::Outcome::kAborted);
  } else if (ran && is_apply(compute.asked.what)) {
    done = do_work(node, compute.asked, true);
    done.outcome = port::Outcome::kAborted;
  }
  post_input(node, compute.slot, done, compute.origin, kFenceTime);
  run_next(node);
}

void World::freeze(NodeId node, bool frozen) {
  for (SimCompute& compute : devices_[node.value - 1].running) {
    if (compute.asked.what != ComputeKind::kGenerate || compute.parked == frozen) continue;
    if (!frozen) {
      begin_generation(node, compute);
      continue;
    }
    queue_.cancel(compute.event);
    port::ComputeDone done = generated(node, compute, port::Outcome::kOk);
    done.total = 1;  // More follows.
    compute.produced += done.count;
    compute.event = 0;
    compute.parked = true;
    compute.mixed = false;
    post_input(node, compute.slot, done, compute.origin, {});
  }
}

void World::compute_ends(const WorldEvent& event, port::TraceSink& sink) {
  if (!node_of(event.node).alive() || node_of(event.node).incarnation() != event.incarnation) return;
  if (hung_until_[event.node.value - 1] > now_) {
    SimDevice& device = devices_[event.node.value - 1];
    const auto place = std::ranges::find(device.running, event.number, &SimCompute::number);
    if (place != device.running.end()) place->event = queue_.post(hung_until_[event.node.value - 1], event);
    return;
  }
  SimDevice& device = devices_[event.node.value - 1];
  const auto place = std::ranges::find(device.running, event.number, &SimCompute::number);
  if (place == device.running.end()) return;
  const SimCompute compute = *place;
  device.running.erase(place);
  const ComputeKind what = compute.asked.what;
  const bool fails = faults_.take_compute_failure(event.node, what, {now_, decisions_, sink});
  port::ComputeDone done;
  if (what == ComputeKind::kGenerate) {
    const bool gone = event.a != 0 || fails;
    done = generated(event.node, compute, gone ? port::Outcome::kPeerGone : port::Outcome::kOk);
    if (gone) done.count = 0;
  } else {
    done = do_work(event.node, compute.asked, fails);
  }
  deliver(WorldEvent{.what = What::kDeliver,
                     .node = event.node,
                     .incarnation = event.incarnation,
                     .slot = compute.slot,
                     .origin = compute.origin,
                     .erased = proto::erase(proto::Input(done))},
          sink);
  run_next(event.node);
}

// A write begins or ends at an engine: whatever it decodes now is made of no version.
void World::weights_changed(EngineId engine) {
  for (SimCompute& compute : devices_[room_->cluster.server(engine).value - 1].running) {
    if (compute.asked.what == ComputeKind::kGenerate && !compute.parked) compute.mixed = true;
  }
}

void World::engine_lost_rank(EngineId id) {
  engines_[id.value].broken = true;
  const NodeId server = room_->cluster.server(id);
  for (SimCompute& compute : devices_[server.value - 1].running) {
    if (compute.asked.what != ComputeKind::kGenerate || compute.parked) continue;
    queue_.cancel(compute.event);
    compute.event = post(room_->scenario.links.reset_after, WorldEvent{.what = What::kComputeEnds,
                                                                       .node = server,
                                                                       .incarnation = node_of(server).incarnation(),
                                                                       .number = compute.number,
                                                                       .a = 1,
                                                                       .erased = {}});
  }
}

}  // namespace areal::sim
