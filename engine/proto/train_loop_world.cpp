// The training world of the training loop: ranks meet under a training epoch, and write checkpoints together.
#include <algorithm>
#include <utility>

#include "engine/proto/train_loop.h"

namespace areal::proto {
namespace {

using port::LoopPhase;
using port::RunEnd;

constexpr TimerId kPhaseTimer{2};
constexpr TimerId kRecoverTimer{3};

void add_to(Digest128& sum, const Digest128& member) {
  DigestSum added{sum};
  added.add(member);
  sum = added.total;
}

}  // namespace

// ---- Meeting ----

// Waits until all ranks live, then lets them meet under the next training epoch.
void TrainLoop::open_world(Outbox& out) {
  state_ = LoopState::kAwaitingRanks;
  if (!std::exchange(clock_runs_, true)) out.push(port::ArmTimer{kRecoverTimer, options_.recover_timeout});
  if (!all_alive()) return;
  const bool reserved = !ports_.empty() && ports_.back().training_epoch > training_epoch_;
  if (reserved || cluster_.guards.empty()) return read_info(out);
  reserve_port(out);
}

void TrainLoop::reserve_port(Outbox& out) {
  state_ = LoopState::kReservingPort;
  ++tries_;
  calls_.ask(cluster_.guards.front(), kGuardSlot, ReservePort{training_epoch_ + 1}, out);
}

void TrainLoop::on_port(Outcome outcome, std::uint16_t port, Outbox& out) {
  if (outcome != Outcome::kOk) {
    if (tries_ >= options_.connect_tries) return end_run(world_failed(), out);
    return back_off(LoopState::kPortBackoff, out);
  }
  tries_ = 0;
  ports_.push_back({training_epoch_ + 1, port});
  read_info(out);
}

// A run begins without a checkpoint.
void TrainLoop::read_info(Outbox& out) {
  if (training_epoch_ == 0) return join_ranks(out);
  await_tell(LoopState::kReadingInfo, out);
  info_.read(out);
}

void TrainLoop::join_ranks(Outbox& out) {
  if (!all_alive()) return open_world(out);
  ++training_epoch_;
  state_ = LoopState::kJoining;
  sum_ = {};
  JoinTraining join{training_epoch_, 0, 0, 0};
  if (info_.record().has_value()) join.version = info_.record()->version, join.slot = info_.record()->slot;
  if (!ports_.empty()) join.port = ports_.back().port;
  for (const NodeId trainer : cluster_.trainers) calls_.ask(trainer, kTrainRankSlot, join, out);
  if (cluster_.trainers.empty()) return_ports(training_epoch_, out);
}

void TrainLoop::on_rank_joined(const port::MessageIn& message, Outbox& out) {
  Outcome outcome = Outcome::kMismatch;
  dispatch_record<TrainingJoined>(message.body, [&](const TrainingJoined& joined) {
    if (joined.training_epoch != training_epoch_) return;
    outcome = joined.outcome;
    add_to(sum_, joined.digest);
  });
  const auto place = std::ranges::find(cluster_.trainers, message.from);
  LoopRank& rank = ranks_[static_cast<std::size_t>(place - cluster_.trainers.begin())];
  rank.incarnation = std::max(rank.incarnation, message.from_incarnation);
  const bool apart = outcome == Outcome::kAborted || outcome == Outcome::kPeerGone || outcome == Outcome::kTimedOut;
  if (apart) return recover(out);
  if (outcome != Outcome::kOk) return end_run(world_failed(), out);
  if (calls_.pending().empty()) return_ports(training_epoch_, out);
}

// Gives back what was reserved for training epochs before `before`: their groups are aborted.
void TrainLoop::return_ports(Epoch before, Outbox& out) {
  if (state_ == LoopState::kJoining) state_ = LoopState::kReturningPorts;
  bool any = false;
  for (const WorldPort& kept : ports_) {
    if (kept.training_epoch >= before) continue;
    any = true;
    calls_.ask(cluster_.guards.front(), kGuardSlot, ReturnPort{kept.training_epoch, kept.port}, out);
  }
  if (!any && state_ == LoopState::kReturningPorts) on_ports_returned(out);
}

void TrainLoop::on_ports_returned(Outbox& out) {
  std::erase_if(ports_, [&](const WorldPort& kept) { return kept.training_epoch < training_epoch_; });
  on_world_open(out);
}

void TrainLoop::on_world_open(Outbox& out) {
  if (std::exchange(clock_runs_, false)) out.push(port::DisarmTimer{kRecoverTimer});
  tries_ = 0;
  Version version = 0;
  if (info_.record().has_value()) {
    const CheckpointRecord& read = *info_.record();
    version = read.version;
    // A checkpoint of other weights than it was written of, or of a run before this one.
    if (sum_ != read.digest || read.step != version || version > next_version()) return end_run(world_failed(), out);
    out.note(port::CheckpointInfo{training_epoch_, version, read.step, read.slot, true, read.accepted, read.digest});
  }
  out.note(port::TrainingWorldChanged{training_epoch_, version, version});
  if (announced_) return go_on_from(version, out);
  if (version != 0) return end_run(world_failed(), out);
  announce(out);
}

RunEnd TrainLoop::world_failed() const {
  return training_epoch_ <= 1 && recoveries_ == 0 ? RunEnd::kConnectFailed : RunEnd::kRecoveryFailed;
}

// ---- Checkpoints ----

void TrainLoop::save(Outbox& out) {
  state_ = LoopState::kSaving;
  ++tries_;
  sum_ = {};
  const SaveCheckpoint asked{training_epoch_, next_version(), info_.free_slot()};
  for (const NodeId trainer : cluster_.trainers) calls_.ask(trainer, kTrainRankSlot, asked, out);
}

void TrainLoop::on_saved(const Record& body, Outbox& out) {
  Outcome outcome = Outcome::kMismatch;
  dispatch_record<CheckpointSaved>(body, [&](const CheckpointSaved& saved) {
    if (saved.training_epoch != training_epoch_ || saved.version != next_version()) return;
    outcome = saved.outcome;
    add_to(sum_, saved.digest);
  });
  if (outcome == Outcome::kPeerGone || outcome == Outcome::kAborted) return recover(out);
  if (outcome != Outcome::kOk) {
    calls_.forget_if([](const PendingRequest&) { return true; }, out);
    if (tries_ >= options_.save_tries) return end_run(RunEnd::kUpdateFailed, out);
    return back_off(LoopState::kSaveBackoff, out);
  }
  if (!calls_.pending().empty()) return;
  const auto steps = static_cast<std::int64_t>(next_version());
  await_tell(LoopState::kWritingInfo, out);
  info_.write({training_epoch_, next_version(), next_version(), info_.free_slot(),
               steps * std::max<std::int64_t>(1, options_.batch_groups), sum_},
              out);
}

void TrainLoop::on_stored(const port::StoreDone& done, Outbox& out) {
  const CheckpointInfo::Event event = info_.on_stored(done, out);
  if (event == CheckpointInfo::Event::kNone) return;
  out.push(port::DisarmTimer{kPhaseTimer});
  const bool reads = state_ == LoopState::kReadingInfo;
  if (event == CheckpointInfo::Event::kFailed) return end_run(reads ? world_failed() : RunEnd::kUpdateFailed, out);
  if (reads) return join_ranks(out);
  const CheckpointRecord& written = *info_.record();
  out.note(port::CheckpointInfo{training_epoch_, written.version, written.step, written.slot, false, written.accepted,
                                written.digest});
  tries_ = 0;
  pause(out);
}

}  // namespace areal::proto
