// Holds decoded tokens to the state of the engine's weights.
#include "sim/check/decode_judge.h"

namespace areal::sim {

std::span<const KindId> DecodeJudge::interest() const {
  static constexpr std::array<KindId, 11> kWanted{
      port::ComputeDone::kKind,  port::ApplyStarted::kKind, port::Applied::kKind,      port::WeightsState::kKind,
      Incarnations::kStarted,    Incarnations::kChanged,    port::PauseChanged::kKind, port::Decoded::kKind,
      port::StartCompute::kKind, port::StopCompute::kKind,  port::FreezeCompute::kKind};
  return kWanted;
}

void DecodeJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  switch (record.kind) {
    case port::Decoded::kKind:
      return on_decoded(event, from_record<port::Decoded>(record), out);
    case port::StartCompute::kKind:
      if (from_record<port::StartCompute>(record).what == port::ComputeKind::kGenerate) on_open(event, out);
      return;
    case port::FreezeCompute::kKind:
      if (!from_record<port::FreezeCompute>(record).frozen) on_open(event, out);
      return;
    case port::StopCompute::kKind:
      return on_stop(event, out);
    case port::PauseChanged::kKind: {
      const auto changed = from_record<port::PauseChanged>(record);
      paused_[changed.engine] = {changed.paused, event.cause, event.seq};
      return;
    }
    case port::ApplyStarted::kKind:
      on_apply(event, from_record<port::ApplyStarted>(record), out);
      break;
    default:
      break;
  }
  weights_.on_event(event);
}

void DecodeJudge::on_apply(const port::TraceEvent& event, const port::ApplyStarted& apply, Violations& out) const {
  if (!setup_->pause_around_update || !weights_.knows(apply.engine)) return;
  const Pause* pause = paused_.find(apply.engine);
  if (pause != nullptr && pause->on) return;
  // A server that began anew has nothing to pause before its first full set of weights.
  const EngineWeights::Rank& server = weights_.ranks(apply.engine).front();
  if (server.restarted || !server.loaded || server.state == port::ServeState::kQuarantined) return;
  Violation found = violation_at(InvariantId::kInv8, event,
                                 say(setup_->name_of(event.node), " began to write version ", apply.version,
                                     " over weights that engine ", apply.engine, " serves: it was not paused"));
  found.version = apply.version;
  if (pause != nullptr) found.related.push_back(pause->seq);
  out.add(std::move(found));
}

void DecodeJudge::on_open(const port::TraceEvent& event, Violations& out) const {
  const EngineWeights::Rank* rank = weights_.rank_at(event.node);
  if (rank == nullptr) return;
  const bool refused = rank->state == port::ServeState::kQuarantined;
  if (rank->applying == 0 && !refused) return;
  Violation found = violation_at(InvariantId::kInv8, event,
                                 say(setup_->name_of(event.node), " began to decode while its weights ",
                                     refused ? "were refused" : "were being written"));
  found.version = rank->version;
  found.related.push_back(refused ? rank->since : rank->applying);
  out.add(std::move(found));
}

void DecodeJudge::on_stop(const port::TraceEvent& event, Violations& out) const {
  const JudgeNode* node = setup_->find(event.node);
  if (setup_->pause != port::PauseMode::kInPlace || node == nullptr || node->infer_rank == kNoRank) return;
  const Pause* pause = paused_.find(node->engine);
  if (pause == nullptr || !pause->on || pause->cause == 0 || pause->cause != event.cause) return;
  Violation found = violation_at(InvariantId::kInv8, event,
                                 say(node->name, " stops running work because of a pause, in pause mode in_place"));
  found.related.push_back(pause->seq);
  out.add(std::move(found));
}

void DecodeJudge::on_decoded(const port::TraceEvent& event, const port::Decoded& decoded, Violations& out) const {
  if (decoded.tokens == 0 || !weights_.knows(decoded.engine)) return;
  const auto report = [&](const std::string& why, NodeId node, std::uint64_t related) {
    Violation found = violation_at(InvariantId::kInv8, event,
                                   say("engine ", decoded.engine, " ended a segment of sample ", decoded.sample, " (",
                                       decoded.tokens, " tokens, version ", decoded.version, ")", why));
    found.node = node;
    found.version = decoded.version;
    if (related != 0) found.related.push_back(related);
    out.add(std::move(found));
  };
  for (const EngineWeights::Rank& rank : weights_.ranks(decoded.engine)) {
    if (rank.applying == 0) continue;
    return report(say(" while ", setup_->name_of(rank.node), " was being written"), rank.node, rank.applying);
  }
  // Without any proof of what this engine ever held there is nothing to compare with.
  if (weights_.held(decoded.engine).empty()) return;
  if (weights_.version_of(decoded.engine, decoded.digest).has_value()) return;
  report(say(" on bytes ", decoded.digest, ", which are no version that it ever held"), event.node, 0);
}

}  // namespace areal::sim
