// Holds labels to the weights that made the tokens.
#include "sim/check/label_judge.h"

namespace areal::sim {

std::span<const KindId> LabelJudge::interest() const {
  static constexpr std::array<KindId, 8> kWanted{
      port::ComputeDone::kKind, port::ApplyStarted::kKind, port::Applied::kKind, port::WeightsState::kKind,
      Incarnations::kStarted,   Incarnations::kChanged,    port::Decoded::kKind, port::SegmentStored::kKind};
  return kWanted;
}

void LabelJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  if (record.kind == port::Decoded::kKind) {
    on_decoded(event, from_record<port::Decoded>(record), out);
  } else if (record.kind == port::SegmentStored::kKind) {
    on_stored(event, from_record<port::SegmentStored>(record), out);
  } else {
    weights_.on_event(event);
  }
}

void LabelJudge::on_decoded(const port::TraceEvent& event, const port::Decoded& decoded, Violations& out) {
  decoded_seen_ = true;
  if (decoded.tokens == 0) return;
  decoded_[decoded.sample].push_back({event.seq, decoded.engine, decoded.version, decoded.tokens, decoded.digest});
  // Bytes that are of no version at all are for the judge of INV-8.
  const auto made_by = weights_.version_of(decoded.engine, decoded.digest);
  if (!made_by.has_value() || weights_.holds(decoded.engine, decoded.version, decoded.digest)) return;
  Violation found =
      violation_at(InvariantId::kInv1, event,
                   say(setup_->name_of(event.node), " said that sample ", decoded.sample, " was made by version ",
                       decoded.version, ", but the bytes that made it (", decoded.digest, ") are version ", *made_by));
  found.version = decoded.version;
  out.add(std::move(found));
}

std::optional<LabelJudge::Truth> LabelJudge::take_truth(const port::SegmentStored& stored) {
  std::vector<Truth>* all = decoded_.find(stored.sample);
  if (all == nullptr) return std::nullopt;
  const auto fits = [&](const Truth& truth) { return truth.engine == stored.engine && truth.tokens == stored.tokens; };
  auto place = std::ranges::find_if(*all, [&](const Truth& truth) {
    return fits(truth) && truth.version == stored.label && truth.digest == stored.digest;
  });
  if (place == all->end()) place = std::ranges::find_if(*all, fits);
  if (place == all->end()) return std::nullopt;
  const Truth truth = *place;
  all->erase(all->begin(), place + 1);
  if (all->empty() || stored.end == port::SegmentEnd::kStop || stored.end == port::SegmentEnd::kLength) {
    decoded_.erase(stored.sample);
  }
  return truth;
}

void LabelJudge::on_stored(const port::TraceEvent& event, const port::SegmentStored& stored, Violations& out) {
  if (stored.tokens == 0) return;
  const auto report = [&](const std::string& why, std::uint64_t related) {
    Violation found =
        violation_at(InvariantId::kInv1, event,
                     say(setup_->name_of(event.node), " stored ", stored.tokens, " tokens of sample ", stored.sample,
                         " from engine ", stored.engine, " under version ", stored.label, why));
    found.version = stored.label;
    if (related != 0) found.related.push_back(related);
    out.add(std::move(found));
  };
  const auto truth = take_truth(stored);
  const std::uint64_t seq = truth.has_value() ? truth->seq : 0;
  if (stored.label < stored.pinned) return report(say(", older than the pinned version ", stored.pinned), seq);
  if (truth.has_value()) {
    // Stored as told: if that is wrong, the server was reported when it said so.
    if (truth->version == stored.label && truth->digest == stored.digest) return;
    return report(say(" and bytes ", stored.digest, "; the engine decoded them with version ", truth->version,
                      " and bytes ", truth->digest),
                  seq);
  }
  if (decoded_seen_) return;  // Stored twice, or made by nobody: that is for the judge of INV-DISP-CONSERVE.
  const auto* held = weights_.find(stored.engine, stored.label);
  if (held == nullptr) {
    const bool sees_weights = weights_.knows(stored.engine) && !weights_.held(stored.engine).empty();
    if (sees_weights) report(", which that engine never held", 0);
    return;
  }
  if (weights_.holds(stored.engine, stored.label, stored.digest)) return;
  report(say(" (bytes ", held->sum, "), but the bytes that made them are ", stored.digest), held->seq);
}

}  // namespace areal::sim
