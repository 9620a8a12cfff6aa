// What operations of devices do: the tiny engine's arithmetic, checkpoints, and the probes of both.
#include <algorithm>
#include <bit>

#include "engine/base/rng.h"
#include "sim/world/world.h"

namespace areal::sim {
namespace {

using port::ComputeKind;

// Share of sample groups whose rewards are all equal, and which are rejected.
constexpr std::uint64_t kRejectOneIn = 16;
// Salt of pseudo-data that is a function of the run's seed.
constexpr std::uint64_t kRewardSalt = 0x726577;
constexpr std::uint64_t kNormSalt = 0x6E6F72;

bool is_delta(ComputeKind what) {
  return what == ComputeKind::kCapture || what == ComputeKind::kInvert || what == ComputeKind::kCompare ||
         what == ComputeKind::kPackDelta || what == ComputeKind::kMarkSynced;
}

}  // namespace

// `cut_short`: it fails; an apply fails half-way and leaves mixed weights.
port::ComputeDone World::do_work(NodeId node, const port::StartCompute& asked, bool cut_short) {
  const RoomNode& place = room_->node(node);
  port::ComputeDone done{asked.op, asked.what, port::Outcome::kOk, asked.version, 0, 0, {}};
  if (cut_short) done.outcome = port::Outcome::kFailed;
  if (place.role == port::Role::kTrainer && is_delta(asked.what)) {
    delta_work(place, asked, cut_short, done);
    return done;
  }
  const bool has_effect = asked.what == ComputeKind::kApply || asked.what == ComputeKind::kApplyDelta;
  if (cut_short && !has_effect) return done;  // It failed before it had any effect.
  if (place.role == port::Role::kTrainer) {
    train_work(place, asked, done);
  } else if (place.role == port::Role::kEngine) {
    engine_work(place, asked, cut_short, done);
  } else if (asked.what == ComputeKind::kReward) {
    done.count = mix_words(mix_words(decisions_.seed(), kRewardSalt), asked.seed) % kRejectOneIn != 0 ? 1 : 0;
  }
  return done;
}

// The scheduler moves once a training step, whether the optimizer's was skipped or not.
double World::learning_rate(Version version) const {
  const double rate = room_->tiny->optimizer.learning_rate;
  if (room_->scenario.train.schedule != config::Schedule::kLinear) return rate;
  const std::uint64_t total = room_->scenario.work.updates;
  const std::uint64_t step = version > 0 ? version - 1 : 0;
  if (step >= total) return 0.0;
  return rate * static_cast<double>(total - step) / static_cast<double>(total);
}

void World::train_work(const RoomNode& place, const port::StartCompute& asked, port::ComputeDone& done) {
  node::TinyTrainer& trainer = trainers_[place.train_rank];
  switch (asked.what) {
    case ComputeKind::kLoadModel:
      trainer.load();
      devices_[place.id.value - 1].model_bytes = room_->model_bytes[place.transfer_rank];
      done.total = room_->members->at(place.transfer_rank).tensors;
      done.digest = trainer.digest();
      break;
    case ComputeKind::kGradients:
      // Fixed point, so that the sum over ranks is exact.
      done.total = mix_words(mix_words(asked.seed, kNormSalt), place.train_rank) >> 40;
      break;
    case ComputeKind::kTrainStep:
      if (trainer.version() + 1 != asked.version) {
        done.outcome = port::Outcome::kMismatch;  // It holds other weights than the step starts from.
        break;
      }
      done.digest = trainer.advance(asked.version, asked.seed, asked.amount, learning_rate(asked.version));
      done.count = asked.amount;
      done.total = std::bit_cast<std::uint64_t>(learning_rate(asked.version));
      done.extra = std::bit_cast<std::uint64_t>(learning_rate(asked.version + 1));
      break;
    case ComputeKind::kPack:
      if (trainer.version() != asked.version) {
        done.outcome = port::Outcome::kMismatch;  // Its weights are of another version.
        break;
      }
      packed_[place.train_rank] = trainer.pack();
      done.count = packed_[place.train_rank].elements;
      done.total = packed_[place.train_rank].sent;
      done.digest = packed_[place.train_rank].digest;
      break;
    case ComputeKind::kSaveCheckpoint:
    case ComputeKind::kLoadCheckpoint:
      checkpoint_work(place, asked, done);
      break;
    default:
      break;
  }
}

// Changes that are in no mask, seen from the bytes that the receivers last acknowledged.
std::uint64_t World::missed_elements(std::uint32_t train_rank) const {
  const node::TinyTrainer& trainer = trainers_[train_rank];
  const std::vector<std::uint32_t>& synced = synced_[train_rank];
  const std::vector<std::uint32_t>& copies = room_->tiny->trainers[train_rank].copies;
  const auto wire = trainer.wire();
  const auto mask = trainer.delta().mask();
  std::uint64_t missed = 0;
  for (std::size_t i = 0; i < synced.size() && i < mask.size(); ++i) {
    if (copies[i] > 0 && wire[i] != synced[i] && mask[i] == 0) ++missed;
  }
  return missed;
}

void World::delta_work(const RoomNode& place, const port::StartCompute& asked, bool cut_short,
                       port::ComputeDone& done) {
  node::TinyTrainer& trainer = trainers_[place.train_rank];
  const auto window = static_cast<std::uint32_t>(asked.amount);
  if (cut_short) {
    if (asked.what == ComputeKind::kInvert) trainer.delta().give_up(window);
    return;
  }
  if (asked.what == ComputeKind::kCapture) {
    if (trainer.version() != asked.version) {
      done.outcome = port::Outcome::kMismatch;
      return;
    }
    done.count = trainer.capture();
  } else if (asked.what == ComputeKind::kInvert) {
    std::optional<double> rate;
    if (asked.rate != port::kNoRate) rate = std::bit_cast<double>(asked.rate);
    const node::TinyDelta::Inverted inverted = trainer.invert(window, rate, asked.seed != 0);
    done.count = inverted.contributed;
    done.total = inverted.force ? 1 : 0;
  } else if (asked.what == ComputeKind::kCompare) {
    const node::TinyDelta::Compared compared = trainer.compare(window, asked.seed != 0);
    done.count = compared.changed;
    done.total = compared.full ? 1 : 0;
  } else if (asked.what == ComputeKind::kPackDelta) {
    packed_[place.train_rank] = trainer.pack_delta();
    done.count = packed_[place.train_rank].elements;
    done.total = packed_[place.train_rank].sent;
    done.extra = missed_elements(place.train_rank);
    done.digest = packed_[place.train_rank].digest;
  } else {
    done.count = trainer.delta().mark_synced();
    synced_[place.train_rank].assign(trainer.wire().begin(), trainer.wire().end());
  }
}

void World::checkpoint_work(const RoomNode& place, const port::StartCompute& asked, port::ComputeDone& done) {
  node::TinyTrainer& trainer = trainers_[place.train_rank];
  Checkpoint& slot = checkpoints_[place.train_rank][asked.amount % 2];
  if (asked.what == ComputeKind::kSaveCheckpoint) {
    if (trainer.version() != asked.version) {
      done.outcome = port::Outcome::kMismatch;
      return;
    }
    slot = {asked.version, trainer.save()};
  } else if (slot.version != asked.version || !trainer.restore(slot.words)) {
    done.outcome = port::Outcome::kFailed;
    return;
  }
  devices_[place.id.value - 1].model_bytes = room_->model_bytes[place.transfer_rank];
  done.digest = hash_words(slot.words);
}

void World::engine_work(const RoomNode& place, const port::StartCompute& asked, bool cut_short,
                        port::ComputeDone& done) {
  node::TinyReplica& replica = replicas_[place.transfer_rank];
  Digest128& held = held_[place.transfer_rank];
  switch (asked.what) {
    case ComputeKind::kLoadModel:
      replica.load();
      landed_bytes_[place.transfer_rank] = 0;
      devices_[place.id.value - 1].model_bytes = room_->model_bytes[place.transfer_rank];
      done.total = room_->members->at(place.transfer_rank).tensors;
      held = replica.digest();
      break;
    case ComputeKind::kVerify: {
      const node::TinyReplica::Verified verified = replica.verify();
      done.count = verified.elements;
      done.digest = verified.digest;
      done.extra = landed_bytes_[place.transfer_rank];
      return;
    }
    case ComputeKind::kApply:
    case ComputeKind::kApplyDelta: {
      const std::size_t all = room_->tiny->plan->tensors.size();
      const node::TinyReplica::Applied applied = replica.apply(cut_short ? all / 2 : node::TinyReplica::kAllTensors);
      done.count = applied.written;
      done.total = applied.total;
      held = replica.digest();
      weights_changed(place.engine);
      replica.clear_staging();
      landed_bytes_[place.transfer_rank] = 0;
      break;
    }
    default:
      break;
  }
  done.digest = held;
}

}  // namespace areal::sim
