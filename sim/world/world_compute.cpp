// Devices: the tiny engine's arithmetic, at the time that the configured model would take for it.
#include <algorithm>

#include "engine/base/rng.h"
#include "sim/world/transfer_time.h"
#include "sim/world/world.h"

namespace areal::sim {
namespace {

using What = WorldEvent::What;
using port::ComputeKind;

constexpr Duration kFenceTime = 1_ms;
constexpr Duration kRewardTime = 50_ms;
// Share of sample groups whose rewards are all equal, and which are rejected.
constexpr std::uint64_t kRejectOneIn = 16;
constexpr std::uint64_t kLeastTokens = 32;
// Salts of pseudo-data that is a function of the run's seed.
constexpr std::uint64_t kLengthSalt = 0x6C656E;
constexpr std::uint64_t kRewardSalt = 0x726577;

}  // namespace

Duration World::duration_of(const port::StartCompute& asked) const {
  const config::DeviceSettings& devices = room_->scenario.devices;
  switch (asked.what) {
    case ComputeKind::kLoadModel:
      return devices.load_time;
    case ComputeKind::kTrainStep:
      return room_->scenario.train.step_time;
    case ComputeKind::kPack:
    case ComputeKind::kVerify:
    case ComputeKind::kApply:
      return kFenceTime + time_of_bytes(asked.amount, devices.copy_bandwidth);
    case ComputeKind::kFence:
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
    compute.event = post(duration_of(compute.asked), WorldEvent{.what = What::kComputeEnds,
                                                                .node = node,
                                                                .incarnation = node_of(node).incarnation(),
                                                                .number = compute.number,
                                                                .erased = {}});
    const RoomNode& place = room_->node(node);
    if (compute.asked.what == ComputeKind::kApply) weights_changed(place.engine);
    return;
  }
}

// Tokens that a sample still has to make: its whole length is a function of the seed and the sample alone, so that
// interruptions do not change it.
std::uint64_t World::tokens_left(const SimCompute& compute) const {
  const std::uint64_t most = room_->scenario.rollout.max_new_tokens;
  const std::uint64_t least = std::min(kLeastTokens, most);
  const std::uint64_t word = mix_words(mix_words(decisions_.seed(), kLengthSalt), compute.asked.seed);
  const std::uint64_t length = least + word % (most - least + 1);
  const std::uint64_t made = most - std::min(most, compute.asked.amount);
  return length > made ? length - made : 1;
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
  for (std::uint32_t i = 0; i < ranks; ++i) sum.add(held_[engine.value * ranks + i]);
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
  } else if (ran && compute.asked.what == ComputeKind::kApply) {
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

// The arithmetic itself. `cut_short`: it fails; an apply fails half-way and leaves mixed weights.
port::ComputeDone World::do_work(NodeId node, const port::StartCompute& asked, bool cut_short) {
  const RoomNode& place = room_->node(node);
  port::ComputeDone done{
      asked.op, asked.what, cut_short ? port::Outcome::kFailed : port::Outcome::kOk, asked.version, 0, 0, {}};
  if (cut_short && asked.what != ComputeKind::kApply) return done;  // It failed before it had any effect.
  if (place.role == port::Role::kTrainer) {
    train_work(place, asked, done);
  } else if (place.role == port::Role::kEngine) {
    engine_work(place, asked, cut_short, done);
  } else if (asked.what == ComputeKind::kReward) {
    done.count = mix_words(mix_words(decisions_.seed(), kRewardSalt), asked.seed) % kRejectOneIn != 0 ? 1 : 0;
  }
  return done;
}

void World::train_work(const RoomNode& place, const port::StartCompute& asked, port::ComputeDone& done) {
  node::TinyTrainer& trainer = trainers_[place.train_rank];
  if (asked.what == ComputeKind::kLoadModel) {
    trainer.load();
    devices_[place.id.value - 1].model_bytes = room_->model_bytes[place.transfer_rank];
    done.total = room_->members->at(place.transfer_rank).tensors;
    done.digest = trainer.digest();
  } else if (asked.what == ComputeKind::kTrainStep && trainer.steps() + 1 != asked.version) {
    done.outcome = port::Outcome::kMismatch;  // It holds other weights than the step starts from.
  } else if (asked.what == ComputeKind::kTrainStep) {
    done.digest = trainer.step(asked.seed);
  } else if (asked.what == ComputeKind::kPack && trainer.steps() != asked.version) {
    done.outcome = port::Outcome::kMismatch;  // Its weights are of another version.
  } else if (asked.what == ComputeKind::kPack) {
    packed_[place.train_rank] = trainer.pack();
    done.count = packed_[place.train_rank].elements;
    done.digest = packed_[place.train_rank].digest;
  }
}

void World::engine_work(const RoomNode& place, const port::StartCompute& asked, bool cut_short,
                        port::ComputeDone& done) {
  node::TinyReplica& replica = replicas_[place.transfer_rank];
  Digest128& held = held_[place.transfer_rank];
  switch (asked.what) {
    case ComputeKind::kLoadModel:
      replica.load();
      devices_[place.id.value - 1].model_bytes = room_->model_bytes[place.transfer_rank];
      done.total = room_->members->at(place.transfer_rank).tensors;
      held = replica.digest();
      break;
    case ComputeKind::kVerify: {
      const node::TinyReplica::Verified verified = replica.verify();
      done.count = verified.elements;
      done.digest = verified.digest;
      return;
    }
    case ComputeKind::kApply: {
      const std::size_t all = room_->tiny->plan->tensors.size();
      const node::TinyReplica::Applied applied = replica.apply(cut_short ? all / 2 : node::TinyReplica::kAllTensors);
      done.count = applied.written;
      done.total = applied.total;
      held = replica.digest();
      weights_changed(place.engine);
      replica.clear_staging();
      break;
    }
    default:
      break;
  }
  done.digest = held;
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
