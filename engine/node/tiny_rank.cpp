#include "engine/node/tiny_rank.h"

#include <bit>
#include <optional>

#include "engine/base/digest.h"
#include "engine/base/rng.h"

namespace areal::node {
namespace {

using port::ComputeKind;

// Salt of the norms of gradients, which are pseudo-data.
constexpr std::uint64_t kNormSalt = 0x6E6F72;

bool finds_changes(ComputeKind what) {
  return what == ComputeKind::kCapture || what == ComputeKind::kInvert || what == ComputeKind::kCompare ||
         what == ComputeKind::kPackDelta || what == ComputeKind::kMarkSynced;
}

}  // namespace

double learning_rate_of(const RoomPlan& room, Version version) {
  const double rate = room.tiny->optimizer.learning_rate;
  if (room.scenario.train.schedule != config::Schedule::kLinear) return rate;
  const std::uint64_t total = room.scenario.work.updates;
  const std::uint64_t step = version > 0 ? version - 1 : 0;
  if (step >= total) return 0.0;
  return rate * static_cast<double>(total - step) / static_cast<double>(total);
}

// ---- Training ----

port::ComputeDone TinyTrainRank::work(const RoomPlan& room, const port::StartCompute& asked, bool cut_short,
                                      TinyCheckpoints& slots) {
  port::ComputeDone done{asked.op, asked.what, port::Outcome::kOk, asked.version, 0, 0, {}};
  if (cut_short) done.outcome = port::Outcome::kFailed;
  if (finds_changes(asked.what)) {
    find_changes(asked, cut_short, done);
  } else if (asked.what == ComputeKind::kSaveCheckpoint || asked.what == ComputeKind::kLoadCheckpoint) {
    if (!cut_short) checkpoint(asked, slots[asked.amount % slots.size()], done);
  } else if (!cut_short) {
    train(room, asked, done);
  }
  return done;
}

void TinyTrainRank::train(const RoomPlan& room, const port::StartCompute& asked, port::ComputeDone& done) {
  switch (asked.what) {
    case ComputeKind::kLoadModel:
      trainer_.load();
      done.total = room.members->at(trainer_.transfer_rank()).tensors;
      done.digest = trainer_.digest();
      break;
    case ComputeKind::kGradients:
      // Fixed point, so that the sum over ranks is exact.
      done.total = mix_words(mix_words(asked.seed, kNormSalt), rank_) >> 40;
      break;
    case ComputeKind::kTrainStep:
      if (trainer_.version() + 1 != asked.version) {
        done.outcome = port::Outcome::kMismatch;  // It holds other weights than the step starts from.
        break;
      }
      done.digest = trainer_.advance(asked.version, asked.seed, asked.amount, learning_rate_of(room, asked.version));
      done.count = asked.amount;
      done.total = std::bit_cast<std::uint64_t>(learning_rate_of(room, asked.version));
      done.extra = std::bit_cast<std::uint64_t>(learning_rate_of(room, asked.version + 1));
      break;
    case ComputeKind::kPack:
      if (trainer_.version() != asked.version) {
        done.outcome = port::Outcome::kMismatch;  // Its weights are of another version.
        break;
      }
      packed_ = trainer_.pack();
      done.count = packed_.elements;
      done.total = packed_.sent;
      done.digest = packed_.digest;
      break;
    default:
      break;
  }
}

// Changes that are in no mask, seen from the bytes that the receivers last acknowledged.
std::uint64_t TinyTrainRank::missed() const {
  const std::vector<std::uint32_t>& copies = trainer_.holding().copies;
  const auto wire = trainer_.wire();
  const auto mask = trainer_.delta().mask();
  std::uint64_t missed = 0;
  for (std::size_t i = 0; i < synced_.size() && i < mask.size(); ++i) {
    if (copies[i] > 0 && wire[i] != synced_[i] && mask[i] == 0) ++missed;
  }
  return missed;
}

void TinyTrainRank::find_changes(const port::StartCompute& asked, bool cut_short, port::ComputeDone& done) {
  const auto window = static_cast<std::uint32_t>(asked.amount);
  if (cut_short) {
    if (asked.what == ComputeKind::kInvert) trainer_.delta().give_up(window);
    return;
  }
  if (asked.what == ComputeKind::kCapture) {
    if (trainer_.version() != asked.version) {
      done.outcome = port::Outcome::kMismatch;
      return;
    }
    done.count = trainer_.capture();
  } else if (asked.what == ComputeKind::kInvert) {
    std::optional<double> rate;
    if (asked.rate != port::kNoRate) rate = std::bit_cast<double>(asked.rate);
    const TinyDelta::Inverted inverted = trainer_.invert(window, rate, asked.seed != 0);
    done.count = inverted.contributed;
    done.total = inverted.force ? 1 : 0;
  } else if (asked.what == ComputeKind::kCompare) {
    const TinyDelta::Compared compared = trainer_.compare(window, asked.seed != 0);
    done.count = compared.changed;
    done.total = compared.full ? 1 : 0;
  } else if (asked.what == ComputeKind::kPackDelta) {
    packed_ = trainer_.pack_delta();
    done.count = packed_.elements;
    done.total = packed_.sent;
    done.extra = missed();
    done.digest = packed_.digest;
  } else {
    done.count = trainer_.delta().mark_synced();
    synced_.assign(trainer_.wire().begin(), trainer_.wire().end());
  }
}

void TinyTrainRank::checkpoint(const port::StartCompute& asked, TinyCheckpoint& slot, port::ComputeDone& done) {
  if (asked.what == ComputeKind::kSaveCheckpoint) {
    if (trainer_.version() != asked.version) {
      done.outcome = port::Outcome::kMismatch;
      return;
    }
    slot = {asked.version, trainer_.save()};
  } else if (slot.version != asked.version || !trainer_.restore(slot.words)) {
    done.outcome = port::Outcome::kFailed;
    return;
  }
  done.digest = hash_words(slot.words);
}

void TinyTrainRank::save(StateWriter& writer) const {
  writer.value(trainer_.save());
  writer.value(trainer_.delta());
  writer.value(packed_);
  writer.value(synced_);
}

// ---- Rollout ----

void TinyEngineRank::clear_staging() {
  replica_.clear_staging();
  landed_bytes_ = 0;
}

port::ComputeDone TinyEngineRank::work(const RoomPlan& room, const port::StartCompute& asked, bool cut_short) {
  port::ComputeDone done{asked.op, asked.what, port::Outcome::kOk, asked.version, 0, 0, {}};
  if (cut_short) done.outcome = port::Outcome::kFailed;
  const bool applies = asked.what == ComputeKind::kApply || asked.what == ComputeKind::kApplyDelta;
  if (cut_short && !applies) return done;
  if (asked.what == ComputeKind::kLoadModel) {
    replica_.load();
    landed_bytes_ = 0;
    done.total = room.members->at(replica_.transfer_rank()).tensors;
    held_ = replica_.digest();
  } else if (asked.what == ComputeKind::kVerify) {
    const TinyReplica::Verified verified = replica_.verify();
    done.count = verified.elements;
    done.digest = verified.digest;
    done.extra = landed_bytes_;
    return done;
  } else if (applies) {
    const std::size_t all = room.tiny->plan->tensors.size();
    const TinyReplica::Applied applied = replica_.apply(cut_short ? all / 2 : TinyReplica::kAllTensors);
    done.count = applied.written;
    done.total = applied.total;
    held_ = replica_.digest();
    clear_staging();
  }
  done.digest = held_;
  return done;
}

void TinyEngineRank::save(StateWriter& writer) const {
  writer.value(replica_.save());
  writer.value(held_);
  writer.value(landed_bytes_);
}

}  // namespace areal::node
