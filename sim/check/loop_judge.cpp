// Follows the phases of the training loop.
#include "sim/check/loop_judge.h"

namespace areal::sim {

using port::LoopPhase;

namespace {

bool is_repair(LoopPhase phase) { return phase >= LoopPhase::kRepairPause && phase <= LoopPhase::kRepairAnnounce; }
bool is_update(LoopPhase phase) { return phase == LoopPhase::kUpdate || phase == LoopPhase::kRepairUpdate; }
// The place of a phase in its step; the checkpoint comes after training.
int place_of(LoopPhase phase) {
  return phase == LoopPhase::kCheckpoint ? 2 * static_cast<int>(LoopPhase::kTrain) + 1 : 2 * static_cast<int>(phase);
}

}  // namespace

std::span<const KindId> LoopJudge::interest() const {
  static constexpr std::array<KindId, 10> kWanted{port::PhaseEntered::kKind,      port::VersionSet::kKind,
                                                  port::VersionPublished::kKind,  port::StepTrained::kKind,
                                                  port::PauseChanged::kKind,      port::Admitted::kKind,
                                                  port::CollectiveEntered::kKind, port::TrainingWorldChanged::kKind,
                                                  Incarnations::kStarted,         Incarnations::kChanged};
  return kWanted;
}

void LoopJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  if (const auto gone = incarnations_.renewed(event)) forget(*gone);
  if (record.kind == port::PhaseEntered::kKind) {
    on_phase(event, from_record<port::PhaseEntered>(record), out);
  } else if (record.kind == port::VersionSet::kKind) {
    on_version(event, from_record<port::VersionSet>(record), out);
  } else if (record.kind == port::VersionPublished::kKind) {
    published_ = std::max(published_, from_record<port::VersionPublished>(record).version);
  } else if (record.kind == port::StepTrained::kKind) {
    trained_[event.node] = {from_record<port::StepTrained>(record).step, true};
  } else if (record.kind == port::PauseChanged::kKind) {
    on_pause(event, from_record<port::PauseChanged>(record), out);
  } else if (record.kind == port::Admitted::kKind) {
    on_admitted(event, from_record<port::Admitted>(record), out);
  } else if (record.kind == port::CollectiveEntered::kKind) {
    on_entered(event, from_record<port::CollectiveEntered>(record), out);
  } else if (record.kind == port::TrainingWorldChanged::kKind) {
    on_world(from_record<port::TrainingWorldChanged>(record));
  }
}

void LoopJudge::forget(NodeId node) {
  if (node == controller_) {
    begun_ = restored_ = false;
    restored_version_ = restored_step_ = 0;
  }
  set_.erase_if([&](const auto& key, Version) { return key.first == node; });
  const JudgeNode* known = setup_->find(node);
  if (known == nullptr || known->infer_rank == kNoRank) return;
  // Only the engine's server pauses: its first rank.
  if (setup_->ranks_of(known->engine).front() == node) pauses_[known->engine].known = false;
}

bool LoopJudge::updates() const {
  const bool moves = phase_ >= LoopPhase::kUpdate && phase_ < LoopPhase::kResume;
  const bool repairs = phase_ == LoopPhase::kRepairUpdate || phase_ == LoopPhase::kRepairAnnounce;
  return begun_ && (moves || repairs);
}

void LoopJudge::on_world(const port::TrainingWorldChanged& world) {
  published_ = std::min(published_, world.version);
  restored_version_ = world.version;
  restored_step_ = world.step;
  set_.clear();
  // The ranks hold what the step before made, also those that never said so.
  for (auto& entry : trained_) entry.value = {world.step == 0 ? 0 : world.step - 1, world.step != 0};
}

bool LoopJudge::may_move_to(std::uint64_t step) const {
  if (step == step_ + 1) return true;
  // The update that gives the engines the restored version belongs to the step that made it, or to the one that is
  // next.
  return phase_ == LoopPhase::kRecover && (step == restored_step_ || step + 1 == restored_step_);
}

bool LoopJudge::may_follow(LoopPhase next) const {
  if (next == LoopPhase::kRecover) return phase_ != LoopPhase::kDone;
  if (phase_ == LoopPhase::kRecover) {
    // What was published and is still held is not moved again: its step goes on behind the update.
    const bool behind =
        next == LoopPhase::kContinueGeneration || next == LoopPhase::kClear || next == LoopPhase::kResume;
    if (behind && published_ > step_) return true;
    // A version that is older than the published one is moved to the engines as in a repair.
    return next == LoopPhase::kPauseRollout || next == LoopPhase::kRepairPause || next == LoopPhase::kCollect ||
           next == LoopPhase::kDone;
  }
  if (restored_ && phase_ == LoopPhase::kResume && next == LoopPhase::kCollect) return true;
  if (is_repair(phase_)) {
    return is_repair(next) ? next >= phase_ && next <= static_cast<LoopPhase>(static_cast<int>(phase_) + 1)
                           : phase_ == LoopPhase::kRepairAnnounce && next == LoopPhase::kCollect;
  }
  if (is_repair(next)) return phase_ == LoopPhase::kCollect && next == LoopPhase::kRepairPause;
  return place_of(next) >= place_of(phase_) ||
         (phase_ == LoopPhase::kPauseGeneration && next == LoopPhase::kPauseRollout);
}

Violation LoopJudge::found_at(const port::TraceEvent& event, InvariantId invariant, const std::string& why) const {
  Violation found = violation_at(invariant, event, setup_->name_of(event.node) + why);
  found.step = step_;
  if (phase_seq_ != 0) found.related.push_back(phase_seq_);
  return found;
}

void LoopJudge::on_phase(const port::TraceEvent& event, const port::PhaseEntered& phase, Violations& out) {
  controller_ = event.node;
  if (begun_ && phase.step != step_) {
    if (!may_move_to(phase.step)) {
      out.add(found_at(event, InvariantId::kLoopMono, say(" entered step ", phase.step, " after step ", step_)));
    } else if (phase_ == LoopPhase::kRecover ? !may_follow(phase.phase)
                                             : phase.phase != LoopPhase::kCollect && phase.phase != LoopPhase::kDone) {
      out.add(found_at(event, InvariantId::kLoopOrder,
                       say(" began step ", phase.step, " with phase ", to_text(phase.phase))));
    }
  } else if (begun_ && !may_follow(phase.phase)) {
    out.add(
        found_at(event, InvariantId::kLoopOrder,
                 say(" entered phase ", to_text(phase.phase), " of step ", phase.step, " after ", to_text(phase_))));
  }
  begun_ = true;
  step_ = phase.step;
  phase_ = phase.phase;
  phase_seq_ = event.seq;
  if (phase_ == LoopPhase::kRecover) restored_ = true;
  if (phase_ == LoopPhase::kCollect || phase_ == LoopPhase::kTrain) restored_ = false;
  if (phase.phase == LoopPhase::kUpdate) judge_trained(event, phase, out);
  if (is_update(phase.phase)) judge_paused(event, phase, out);
}

void LoopJudge::judge_trained(const port::TraceEvent& event, const port::PhaseEntered& phase, Violations& out) const {
  // Nobody ever said that it trained, or what is moved was read back: there is nothing to compare with.
  if (trained_.empty() || restored_) return;
  for (const JudgeNode& node : setup_->nodes) {
    if (node.train_rank == kNoRank) continue;
    const Trained* trained = trained_.find(node.id);
    if (trained != nullptr && trained->any && trained->step >= phase.step) continue;
    out.add(found_at(event, InvariantId::kLoopOrder,
                     say(" began the update of step ", phase.step, " before ", node.name, " had trained it")));
  }
}

void LoopJudge::judge_paused(const port::TraceEvent& event, const port::PhaseEntered& phase, Violations& out) const {
  if (!setup_->pause_around_update) return;
  const std::uint32_t engines = setup_->engines();
  for (std::uint32_t engine = 0; engine < engines; ++engine) {
    const Pause* pause = pauses_.find(EngineId{engine});
    if (pause != nullptr && (pause->on || !pause->known)) continue;
    Violation found =
        found_at(event, InvariantId::kLoopPaused,
                 say(" began the update of step ", phase.step, " while engine ", engine, " was not paused"));
    if (pause != nullptr) found.related.push_back(pause->seq);
    out.add(std::move(found));
  }
}

void LoopJudge::on_pause(const port::TraceEvent& event, const port::PauseChanged& changed, Violations& out) {
  pauses_[changed.engine] = {changed.paused, true, event.seq};
  if (changed.paused || !setup_->pause_around_update || !begun_ || !is_update(phase_)) return;
  out.add(found_at(event, InvariantId::kLoopPaused,
                   say(" let engine ", changed.engine, " continue during the update of step ", step_)));
}

void LoopJudge::on_admitted(const port::TraceEvent& event, const port::Admitted& admitted, Violations& out) const {
  if (!setup_->pause_around_update || !updates()) return;
  Violation found =
      found_at(event, InvariantId::kLoopPaused,
               say(" admitted sample group ", admitted.group, " in phase ", to_text(phase_), " of step ", step_));
  found.version = admitted.version;
  out.add(std::move(found));
}

void LoopJudge::on_entered(const port::TraceEvent& event, const port::CollectiveEntered& entered,
                           Violations& out) const {
  if (!setup_->pause_around_update || !begun_) return;
  const std::uint32_t engines = setup_->engines();
  for (std::uint32_t engine = 0; engine < engines; ++engine) {
    const Pause* pause = pauses_.find(EngineId{engine});
    if (pause != nullptr && (pause->on || !pause->known)) continue;
    Violation found = found_at(event, InvariantId::kInv6,
                               say(" entered the collectives of version ", entered.version, " while engine ", engine,
                                   " still generated: the others wait until all have paused"));
    found.version = entered.version;
    if (pause != nullptr) found.related.push_back(pause->seq);
    return out.add(std::move(found));
  }
}

void LoopJudge::on_version(const port::TraceEvent& event, const port::VersionSet& set, Violations& out) {
  const std::pair key{event.node, set.role};
  if (!set_.contains(key)) set_[key] = restored_version_;
  Version& last = set_[key];
  if (set.version > published_) {
    Violation found = found_at(event, InvariantId::kLoopOrder,
                               say(" set version ", set.version, " of the ", to_text(set.role),
                                   " before it was published; the last published one is ", published_));
    found.version = set.version;
    out.add(std::move(found));
  } else if (set.version != last && set.version != last + 1) {
    Violation found =
        found_at(event, InvariantId::kLoopMono,
                 say(" set version ", set.version, " of the ", to_text(set.role), " after version ", last));
    found.version = set.version;
    out.add(std::move(found));
  }
  last = set.version;
}

}  // namespace areal::sim
