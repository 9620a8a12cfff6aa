// Holds decoded tokens to the state of the engine's weights.
#include "sim/check/decode_judge.h"

namespace areal::sim {

std::span<const KindId> DecodeJudge::interest() const {
  static constexpr std::array<KindId, 8> kWanted{
      port::ComputeDone::kKind, port::ApplyStarted::kKind, port::Applied::kKind,      port::WeightsState::kKind,
      Incarnations::kStarted,   Incarnations::kChanged,    port::PauseChanged::kKind, port::Decoded::kKind};
  return kWanted;
}

void DecodeJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  if (record.kind == port::Decoded::kKind) return on_decoded(event, from_record<port::Decoded>(record), out);
  if (record.kind == port::PauseChanged::kKind) {
    const auto changed = from_record<port::PauseChanged>(record);
    paused_[changed.engine] = changed.paused;
    return;
  }
  if (record.kind == port::ApplyStarted::kKind) on_apply(event, from_record<port::ApplyStarted>(record), out);
  weights_.on_event(event);
}

void DecodeJudge::on_apply(const port::TraceEvent& event, const port::ApplyStarted& apply, Violations& out) const {
  if (!setup_->pause_around_update || !weights_.knows(apply.engine)) return;
  const bool* paused = paused_.find(apply.engine);
  if (paused != nullptr && *paused) return;
  // An engine that serves nothing yet needs no pause.
  const bool serves = std::ranges::any_of(weights_.ranks(apply.engine), [](const EngineWeights::Rank& rank) {
    return rank.state == port::ServeState::kServing;
  });
  if (!serves) return;
  Violation found = violation_at(InvariantId::kInv8, event,
                                 say(setup_->name_of(event.node), " began to write version ", apply.version,
                                     " over weights that engine ", apply.engine, " serves: it was not paused"));
  found.version = apply.version;
  out.add(std::move(found));
}

void DecodeJudge::on_decoded(const port::TraceEvent& event, const port::Decoded& decoded, Violations& out) const {
  const auto report = [&](const std::string& why, NodeId node, std::uint64_t related) {
    Violation found = violation_at(InvariantId::kInv8, event,
                                   say("engine ", decoded.engine, " ended a segment of sample ", decoded.sample, " (",
                                       decoded.tokens, " tokens, version ", decoded.version, ")", why));
    found.node = node;
    found.version = decoded.version;
    if (related != 0) found.related.push_back(related);
    out.add(std::move(found));
  };
  if (setup_->pause == port::PauseMode::kInPlace && decoded.end == port::SegmentEnd::kAborted) {
    report(" by aborting it, in pause mode in_place", event.node, 0);
  }
  if (decoded.tokens == 0 || !weights_.knows(decoded.engine)) return;
  for (const EngineWeights::Rank& rank : weights_.ranks(decoded.engine)) {
    if (rank.applying != 0) {
      return report(say(" while ", setup_->name_of(rank.node), " was being written"), rank.node, rank.applying);
    }
    if (rank.state == port::ServeState::kQuarantined) {
      return report(say(" although ", setup_->name_of(rank.node), " refuses to serve its weights"), event.node, rank.since);
    }
  }
  // Without any proof of what this engine ever held there is nothing to compare with.
  if (weights_.held(decoded.engine).empty()) return;
  if (weights_.version_of(decoded.engine, decoded.digest).has_value()) return;
  report(say(" on bytes ", decoded.digest, ", which are no version that it ever held"), event.node, 0);
}

}  // namespace areal::sim
