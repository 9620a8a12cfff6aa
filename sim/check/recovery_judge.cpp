// Compares checkpoints with what is read back, and training with where it should go on.
#include "sim/check/recovery_judge.h"

namespace areal::sim {

std::span<const KindId> RecoveryJudge::interest() const {
  static constexpr std::array<KindId, 8> kWanted{
      port::CheckpointRank::kKind, port::CheckpointInfo::kKind, port::TrainingWorldChanged::kKind,
      port::StepTrained::kKind,    port::UpdateStarted::kKind,  port::VersionPublished::kKind,
      Incarnations::kStarted,      Incarnations::kChanged};
  return kWanted;
}

void RecoveryJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  // A controller that begins again may know nothing of what it said before.
  const auto gone = incarnations_.renewed(event);
  if (gone.has_value() && *gone == world_node_) world_seq_ = 0;
  if (record.kind == port::CheckpointRank::kKind) {
    on_rank(event, from_record<port::CheckpointRank>(record), out);
  } else if (record.kind == port::CheckpointInfo::kKind) {
    on_info(event, from_record<port::CheckpointInfo>(record), out);
  } else if (record.kind == port::TrainingWorldChanged::kKind) {
    on_world(event, from_record<port::TrainingWorldChanged>(record), out);
  } else if (record.kind == port::StepTrained::kKind) {
    on_trained(event, from_record<port::StepTrained>(record), out);
  } else if (record.kind == port::UpdateStarted::kKind) {
    started_seq_ = event.seq;
  } else if (record.kind == port::VersionPublished::kKind) {
    on_published(event, from_record<port::VersionPublished>(record), out);
  }
}

void RecoveryJudge::report(const port::TraceEvent& event, InvariantId invariant, Version version, std::uint64_t related,
                           const std::string& why, Violations& out) const {
  Violation found = violation_at(invariant, event, setup_->name_of(event.node) + why);
  found.version = version;
  if (related != 0) found.related.push_back(related);
  out.add(std::move(found));
}

void RecoveryJudge::on_rank(const port::TraceEvent& event, const port::CheckpointRank& part, Violations& out) {
  if (part.restored) return on_restored(event, part, out);
  const port::CheckpointInfo& info = info_.said;
  if (info_.seq != 0 && info.slot == part.slot && info.version != part.version) {
    report(event, InvariantId::kRecAtomic, part.version, info_.seq,
           say(" wrote version ", part.version, " over slot ", part.slot, ", which the recovery information names for ",
               "version ", info.version),
           out);
  }
  parts_[{part.slot, part.rank}] = {part, event.seq};
}

void RecoveryJudge::on_restored(const port::TraceEvent& event, const port::CheckpointRank& part,
                                Violations& out) const {
  const Part* written = parts_.find({part.slot, part.rank});
  if (written == nullptr) return;
  const bool same = written->said.version == part.version && written->said.digest == part.digest;
  if (same) return;
  report(event, InvariantId::kInv17, part.version, written->seq,
         say(" read version ", part.version, " (", part.digest, ") from slot ", part.slot, ", where version ",
             written->said.version, " (", written->said.digest, ") was written"),
         out);
}

std::string RecoveryJudge::missing_parts(const port::CheckpointInfo& info) const {
  std::string missing;
  for (const JudgeNode& node : setup_->nodes) {
    if (node.train_rank == kNoRank) continue;
    const Part* part = parts_.find({info.slot, node.train_rank});
    // Whoever reads information back says so in a later training epoch than that of the parts.
    const bool whole = part != nullptr && part->said.version == info.version &&
                       (info.restored || part->said.training_epoch == info.training_epoch);
    if (!whole) missing += " " + node.name;
  }
  return missing;
}

void RecoveryJudge::on_info_read(const port::TraceEvent& event, const port::CheckpointInfo& info, Violations& out) {
  restored_ = {info, event.seq};
  const port::CheckpointInfo& written = info_.said;
  const bool newer = info_.seq == 0 || (info.version > written.version && info.slot != written.slot);
  if (newer && missing_parts(info).empty()) {
    info_ = {info, event.seq};
    return;
  }
  const bool same = written.version == info.version && written.step == info.step && written.slot == info.slot &&
                    written.accepted == info.accepted;
  if (info_.seq == 0 || same) return;
  report(event, InvariantId::kInv17, info.version, info_.seq,
         say(" read information of version ", info.version, ", step ", info.step, ", slot ", info.slot, ", ",
             info.accepted, " accepted; written were version ", written.version, ", step ", written.step, ", slot ",
             written.slot, ", ", written.accepted),
         out);
}

void RecoveryJudge::on_info(const port::TraceEvent& event, const port::CheckpointInfo& info, Violations& out) {
  if (info.restored) return on_info_read(event, info, out);
  info_ = {info, event.seq};
  const std::string missing = missing_parts(info);
  if (missing.empty()) return;
  report(
      event, InvariantId::kRecAtomic, info.version, 0,
      say(" wrote information of version ", info.version, " in slot ", info.slot, " before it was saved by:", missing),
      out);
}

void RecoveryJudge::on_world(const port::TraceEvent& event, const port::TrainingWorldChanged& world, Violations& out) {
  if (world_seq_ != 0 && world.training_epoch <= world_.training_epoch) {
    report(event, InvariantId::kRecEpoch, world.version, world_seq_,
           say(" began training epoch ", world.training_epoch, " after epoch ", world_.training_epoch), out);
  }
  const port::CheckpointInfo& read = restored_.said;
  if (restored_.seq != 0 && (read.version != world.version || read.step != world.step)) {
    report(event, InvariantId::kRecVersion, world.version, restored_.seq,
           say(" goes on with step ", world.step, " at version ", world.version, ", but step ", read.step,
               " at version ", read.version, " was read back"),
           out);
  }
  if (world_seq_ != 0 || world.version != 0) ++recoveries_;
  restored_ = {};
  world_ = world;
  world_seq_ = event.seq;
  world_node_ = event.node;
  trained_ = world.version;
}

void RecoveryJudge::on_trained(const port::TraceEvent& event, const port::StepTrained& trained, Violations& out) {
  if (world_seq_ == 0) return;
  const bool follows = trained.version > world_.version && trained.version <= trained_ + 1;
  if (!follows) {
    report(event, InvariantId::kRecVersion, trained.version, world_seq_,
           say(" trained version ", trained.version, " in training epoch ", world_.training_epoch,
               ", which began with version ", world_.version, " and has come to ", trained_),
           out);
  }
  trained_ = std::max(trained_, trained.version);
}

void RecoveryJudge::on_published(const port::TraceEvent& event, const port::VersionPublished& published,
                                 Violations& out) const {
  // An update that began before is of what training was then.
  if (world_seq_ == 0 || started_seq_ < world_seq_) return;
  if (published.version >= world_.version && published.version <= trained_) return;
  report(event, InvariantId::kRecVersion, published.version, world_seq_,
         say(" published version ", published.version, ", but training epoch ", world_.training_epoch,
             " began with version ", world_.version, " and has come to ", trained_),
         out);
}

void RecoveryJudge::measure(std::vector<Measure>& out) const {
  if (recoveries_ != 0) out.push_back({"recoveries", recoveries_});
}

}  // namespace areal::sim
