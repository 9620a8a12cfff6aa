// Derives which updates must be full, and compares.
#include "sim/check/anchor_judge.h"

namespace areal::sim {

using port::FullReason;
using port::UpdateMode;

std::span<const KindId> AnchorJudge::interest() const {
  static constexpr std::array<KindId, 12> kWanted{
      port::UpdateStarted::kKind,     port::UpdateEnded::kKind, port::VersionPublished::kKind,
      port::AnchorSet::kKind,         port::PairChanged::kKind, port::TrainingWorldChanged::kKind,
      port::CollectiveEntered::kKind, port::DeltaVoted::kKind,  port::StepTrained::kKind,
      port::ComputeDone::kKind,       Incarnations::kStarted,   Incarnations::kChanged};
  if (!setup_->delta) return {};
  return kWanted;
}

void AnchorJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  last_ = event;
  if (const auto gone = incarnations_.renewed(event)) on_renewed(event, *gone);
  if (record.kind == port::StepTrained::kKind) {
    auto& [count, seq] = steps_[event.node];
    count += from_record<port::StepTrained>(record).optimizer_steps;
    seq = event.seq;
  } else if (record.kind == port::CollectiveEntered::kKind) {
    entered_ = entered_ || key_of(from_record<port::CollectiveEntered>(record)) == open_;
  } else if (record.kind == port::DeltaVoted::kKind) {
    on_voted(event, from_record<port::DeltaVoted>(record), out);
  } else if (record.kind == port::ComputeDone::kKind) {
    on_compute(event, from_record<port::ComputeDone>(record));
  } else if (record.kind == port::TrainingWorldChanged::kKind) {
    const Version version = from_record<port::TrainingWorldChanged>(record).version;
    if (world_seen_ || version != 0) {
      causes_.add({AnchorCause::kRecovered, event.seq, say("training went on from version ", version)});
    }
    world_seen_ = true;
    steps_.clear();
  } else {
    on_gateway(event, out);
  }
}

void AnchorJudge::on_gateway(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  if (record.kind == port::UpdateStarted::kKind) {
    settle(event, out);
    on_started(from_record<port::UpdateStarted>(record));
  } else if (record.kind == port::UpdateEnded::kKind) {
    settle(event, out);
    on_ended(event, from_record<port::UpdateEnded>(record));
  } else if (record.kind == port::VersionPublished::kKind) {
    on_published(event, from_record<port::VersionPublished>(record), out);
  } else if (record.kind == port::AnchorSet::kKind) {
    on_anchor(event, from_record<port::AnchorSet>(record), out);
  } else if (record.kind == port::PairChanged::kKind) {
    settle(event, out);
    const auto pair = from_record<port::PairChanged>(record);
    if (pair.state != port::PairState::kBroken && pair.state != port::PairState::kTearingDown) return;
    causes_.add({AnchorCause::kLost, event.seq, say("the pair of epoch ", pair.epoch, " was given up")});
  }
}

void AnchorJudge::on_renewed(const port::TraceEvent& event, NodeId node) {
  const JudgeNode* known = setup_->find(node);
  if (known == nullptr) return;
  const bool counts =
      known->train_rank != kNoRank || known->infer_rank != kNoRank || known->role == port::Role::kGateway;
  if (counts) causes_.add({AnchorCause::kLost, event.seq, known->name + " died or began anew"});
  if (known->role == port::Role::kGateway) {
    open_ = {};
    ended_.reset();
  }
  if (known->train_rank != kNoRank) steps_.erase(node);
}

void AnchorJudge::on_compute(const port::TraceEvent& event, const port::ComputeDone& done) {
  using enum port::ComputeKind;
  const JudgeNode* node = setup_->find(event.node);
  if (done.outcome == port::Outcome::kOk || node == nullptr || node->train_rank == kNoRank) return;
  const CauseFact fact{AnchorCause::kInversion, event.seq,
                       say(node->name, "'s ", to_text(done.what), " ended ", to_text(done.outcome))};
  if (done.what == kCapture || done.what == kInvert || done.what == kCompare || done.what == kPackDelta) {
    causes_.add_now(fact);
    // Nothing was captured that the end of this update could put on record.
    if (done.what == kCapture) causes_.add(fact);
  } else if (done.what == kMarkSynced) {
    causes_.add(fact);
  }
}

void AnchorJudge::on_started(const port::UpdateStarted& started) {
  open_ = key_of(started);
  entered_ = false;
  causes_.begin_update();
}

void AnchorJudge::on_ended(const port::TraceEvent& event, const port::UpdateEnded& ended) {
  if (key_of(ended) != open_) return;
  open_ = {};
  if (ended.outcome == port::Outcome::kOk) {
    ended_ = Ended{key_of(ended), std::nullopt, FullReason::kNone, 0};
    return;
  }
  causes_.end_update(false);
  causes_.add({entered_ ? AnchorCause::kFailed : AnchorCause::kRefused, event.seq,
               say("attempt ", ended.attempt, " of version ", ended.version, " ended ", to_text(ended.outcome))});
}

void AnchorJudge::on_published(const port::TraceEvent& event, const port::VersionPublished& published,
                               Violations& out) {
  if (!ended_.has_value() || key_of(published) != ended_->key) return;
  ended_->published = published.mode;
  ended_->reason = published.reason;
  judge(event, published.mode, published.reason, published.version, out);
}

void AnchorJudge::on_anchor(const port::TraceEvent& event, const port::AnchorSet& anchor, Violations& out) {
  const auto blame = [&](const std::string& why) {
    report(event, InvariantId::kAnchorCause, anchor.version,
           say(" set an anchor at version ", anchor.version, " (attempt ", anchor.attempt, ")", why), {}, out);
  };
  if (!ended_.has_value() || key_of(anchor) != ended_->key) return blame(", which no update has just reached");
  if (++ended_->anchors > 1) return blame(" a second time");
  if (!ended_->published.has_value()) return judge(event, UpdateMode::kFull, anchor.reason, anchor.version, out);
  if (*ended_->published == UpdateMode::kDelta) return blame(" for a delta");
  if (anchor.reason == ended_->reason) return;
  blame(say(" for reason ", to_text(anchor.reason), ", and published it for reason ", to_text(ended_->reason)));
}

// After a failed attempt nobody may come to a delta, whatever becomes of it.
void AnchorJudge::on_voted(const port::TraceEvent& event, const port::DeltaVoted& voted, Violations& out) const {
  if (voted.mode != UpdateMode::kDelta || key_of(voted) != open_) return;
  for (const CauseFact& fact : causes_.present()) {
    if (fact.cause != AnchorCause::kFailed) continue;
    return report(event, InvariantId::kDeltaFailFull, voted.version,
                  say(" came to a delta for version ", voted.version, ", attempt ", voted.attempt), {fact}, out);
  }
}

std::vector<CauseFact> AnchorJudge::derive() const {
  std::vector<CauseFact> causes;
  if (!seeded_) causes.push_back({AnchorCause::kUnseeded, 0, "nothing was ever sent in full"});
  causes.insert(causes.end(), causes_.present().begin(), causes_.present().end());
  for (const auto& [node, steps] : steps_) {
    if (steps.first < 2) continue;
    causes.push_back({AnchorCause::kSteps, steps.second,
                      say(setup_->name_of(node), " made ", steps.first, " optimizer steps since the last update")});
    break;
  }
  if (setup_->anchor_interval != 0 && since_ >= setup_->anchor_interval) {
    causes.push_back({AnchorCause::kInterval, 0, say(since_, " deltas came since the last full update")});
  }
  return causes;
}

void AnchorJudge::judge(const port::TraceEvent& event, UpdateMode mode, FullReason reason, Version version,
                        Violations& out) const {
  const std::vector<CauseFact> causes = derive();
  const auto has = [&](AnchorCause cause) {
    return std::ranges::any_of(causes, [&](const CauseFact& fact) { return fact.cause == cause; });
  };
  std::string why;
  if (mode == UpdateMode::kDelta) {
    if (std::ranges::none_of(causes, [](const CauseFact& fact) { return compels(fact.cause); })) return;
    why = say(" published version ", version, " as a delta, although it had to be full");
    if (has(AnchorCause::kFailed)) report(event, InvariantId::kDeltaFailFull, version, why, causes, out);
    if (has(AnchorCause::kInterval)) report(event, InvariantId::kInv5, version, why, causes, out);
  } else {
    if (std::ranges::any_of(causes, [&](const CauseFact& fact) { return explains(fact.cause, reason); })) return;
    why = say(" sent version ", version, " in full for reason ", to_text(reason),
              causes.empty() ? ", although nothing made it so" : ", which fits no cause");
    if (reason == FullReason::kAnchorInterval) {
      why += say(": ", since_, " deltas since the last full update, the anchor interval is ", setup_->anchor_interval);
      report(event, InvariantId::kInv5, version, why, causes, out);
    }
  }
  report(event, InvariantId::kAnchorCause, version, why, causes, out);
}

void AnchorJudge::settle(const port::TraceEvent& event, Violations& out) {
  if (!ended_.has_value()) return;
  const bool full = ended_->published.value_or(UpdateMode::kFull) == UpdateMode::kFull;
  if (full && ended_->anchors == 0) {
    report(event, InvariantId::kAnchorCause, ended_->key.version,
           say(" set no anchor at version ", ended_->key.version, ", which it sent in full"), {}, out);
  }
  ++(full ? fulls_ : deltas_);
  since_ = full ? 0 : since_ + 1;
  if (full) seeded_ = ended_->key.version != 0;  // Version 0 is no base: it is what a rank holds that holds nothing.
  steps_.clear();
  causes_.end_update(true);
  ended_.reset();
}

void AnchorJudge::report(const port::TraceEvent& event, InvariantId invariant, Version version, const std::string& why,
                         const std::vector<CauseFact>& causes, Violations& out) const {
  std::string text = setup_->name_of(event.node) + why;
  for (const CauseFact& fact : causes) text += (&fact == causes.data() ? "; causes: " : ", ") + fact.words;
  Violation found = violation_at(invariant, event, std::move(text));
  found.version = version;
  for (const CauseFact& fact : causes) {
    if (fact.seq != 0) found.related.push_back(fact.seq);
  }
  out.add(std::move(found));
}

void AnchorJudge::at_end(bool finished, Violations& out) {
  if (finished) settle(last_, out);
}

void AnchorJudge::measure(std::vector<Measure>& out) const {
  if (!setup_->delta) return;
  out.push_back({"full updates", fulls_});
  out.push_back({"deltas", deltas_});
}

}  // namespace areal::sim
