// Follows the pair through its states and its published versions.
#include "sim/check/pair_judge.h"

namespace areal::sim {
namespace {

using port::PairState;

bool may_move(PairState from, PairState to) {
  switch (from) {
    case PairState::kAbsent:
      return to == PairState::kReserved;
    case PairState::kReserved:
      return to == PairState::kConnected || to == PairState::kRollingBack;
    case PairState::kRollingBack:
      return to == PairState::kAbsent;
    // A member can be lost between updates too.
    case PairState::kConnected:
      return to == PairState::kUpdating || to == PairState::kTearingDown || to == PairState::kBroken;
    case PairState::kUpdating:
      return to == PairState::kConnected || to == PairState::kBroken;
    case PairState::kBroken:
      return to == PairState::kTearingDown;
    case PairState::kTearingDown:
      return to == PairState::kAbsent;
  }
  return false;
}

}  // namespace

std::span<const KindId> PairJudge::interest() const {
  static constexpr std::array<KindId, 9> kWanted{
      port::PairChanged::kKind,          port::UpdateStarted::kKind,     port::UpdateEnded::kKind,
      port::VersionPublished::kKind,     port::CollectiveEntered::kKind, port::Exported::kKind,
      port::TrainingWorldChanged::kKind, Incarnations::kStarted,         Incarnations::kChanged};
  return kWanted;
}

void PairJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  const auto gone = incarnations_.renewed(event);
  if (gone.has_value() && *gone == gateway_) {
    known_ = false;
    open_update_ = 0;
  }
  if (record.kind == port::PairChanged::kKind) {
    on_pair(event, from_record<port::PairChanged>(record), out);
  } else if (record.kind == port::UpdateStarted::kKind) {
    on_started(event, from_record<port::UpdateStarted>(record), out);
  } else if (record.kind == port::UpdateEnded::kKind) {
    open_update_ = 0;
  } else if (record.kind == port::VersionPublished::kKind) {
    on_published(event, from_record<port::VersionPublished>(record), out);
  } else if (record.kind == port::Exported::kKind) {
    on_exported(from_record<port::Exported>(record));
  } else if (record.kind == port::TrainingWorldChanged::kKind) {
    const Version version = from_record<port::TrainingWorldChanged>(record).version;
    ++history_;
    // What was read back may be given to the engines again.
    least_ = std::min(least_, version);
  } else if (record.kind == port::CollectiveEntered::kKind) {
    const auto entered = from_record<port::CollectiveEntered>(record);
    if (entered.epoch <= epoch_) return;
    report(event, InvariantId::kPairReserveFirst, entered.version, state_seq_,
           say(" entered collectives of epoch ", entered.epoch, ", which was never reserved"), out);
  }
}

void PairJudge::report(const port::TraceEvent& event, InvariantId invariant, Version version, std::uint64_t related,
                       const std::string& why, Violations& out) const {
  Violation found = violation_at(invariant, event, setup_->name_of(event.node) + why);
  found.version = version;
  if (related != 0) found.related.push_back(related);
  out.add(std::move(found));
}

void PairJudge::on_pair(const port::TraceEvent& event, const port::PairChanged& pair, Violations& out) {
  gateway_ = event.node;
  const bool moved = pair.state != state_ || (pair.state == PairState::kReserved && pair.epoch != epoch_);
  const bool active = pair.state != PairState::kAbsent && pair.state != PairState::kRollingBack;
  if (known_ && moved && !may_move(state_, pair.state)) {
    const bool unreserved = (state_ == PairState::kAbsent || state_ == PairState::kRollingBack) && active;
    report(event, unreserved ? InvariantId::kPairReserveFirst : InvariantId::kPairUnique, pair.version, state_seq_,
           say(" moved the pair from ", to_text(state_), " (epoch ", epoch_, ") to ", to_text(pair.state), " (epoch ",
               pair.epoch, "), which no arrow allows"),
           out);
  } else if (known_ && moved && pair.state == PairState::kReserved && epoch_ != 0 && pair.epoch <= epoch_) {
    report(event, InvariantId::kPairUnique, pair.version, state_seq_,
           say(" reserved epoch ", pair.epoch, " after epoch ", epoch_), out);
  }
  if (pair.state == PairState::kConnected && pair.version > 0) {
    const bool was_published =
        std::ranges::any_of(published_, [&](const auto& entry) { return entry.key.version == pair.version; });
    if (!was_published) {
      report(event, InvariantId::kPairVersion, pair.version, state_seq_,
             say(" says that version ", pair.version, " is the last published one, but it never was"), out);
    }
  }
  known_ = true;
  state_ = pair.state;
  state_seq_ = event.seq;
  epoch_ = std::max(epoch_, pair.epoch);
}

void PairJudge::on_started(const port::TraceEvent& event, const port::UpdateStarted& update, Violations& out) {
  if (open_update_ != 0) {
    report(event, InvariantId::kPairSerial, update.version, open_update_,
           say(" started an update to version ", update.version, " (attempt ", update.attempt,
               ") while another one was open"),
           out);
  }
  open_update_ = event.seq;
  update_history_ = history_;
}

void PairJudge::on_exported(const port::Exported& exported) {
  const bool same = exported.epoch == export_key_.epoch && exported.version == export_key_.version &&
                    exported.attempt == export_key_.attempt;
  if (!same) exported_ = {};
  export_key_ = exported;
  exported_.add(exported.digest);
}

void PairJudge::on_published(const port::TraceEvent& event, const port::VersionPublished& published, Violations& out) {
  const bool exported = export_key_.epoch == published.epoch && export_key_.version == published.version &&
                        export_key_.attempt == published.attempt;
  const Digest128 bytes = exported ? exported_.total : Digest128{};
  const Key key{update_history_, published.epoch, published.version};
  if (const Published* before = published_.find(key)) {
    const bool other_bytes = exported && before->exported != Digest128{} && before->exported != bytes;
    report(event, InvariantId::kPairVersion, published.version, before->seq,
           say(" published version ", published.version, " of epoch ", published.epoch, " again",
               other_bytes ? say(", with other bytes: ", bytes, " instead of ", before->exported) : std::string()),
           out);
    return;
  }
  published_[key] = {event.seq, bytes};
  if (update_history_ != history_) return;  // Begun before training went back, and late.
  if (published.version < least_) {
    report(event, InvariantId::kPairVersion, published.version, last_seq_,
           say(" published version ", published.version, " of epoch ", published.epoch, " after version ", least_ - 1),
           out);
  }
  least_ = std::max(least_, published.version + 1);
  last_seq_ = event.seq;
}

}  // namespace areal::sim
