// Holds routes to what the engines are proven to hold.
#include "sim/check/route_judge.h"

namespace areal::sim {

std::span<const KindId> RouteJudge::interest() const {
  static constexpr std::array<KindId, 11> kWanted{
      port::ComputeDone::kKind,  port::ApplyStarted::kKind,        port::Applied::kKind,
      port::WeightsState::kKind, Incarnations::kStarted,           Incarnations::kChanged,
      port::VersionSet::kKind,   port::VersionPublished::kKind,    port::EligibleChanged::kKind,
      port::Routed::kKind,       port::TrainingWorldChanged::kKind};
  return kWanted;
}

void RouteJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  if (const auto gone = incarnations_.renewed(event)) {
    const JudgeNode* node = setup_->find(*gone);
    if (node != nullptr && node->role == port::Role::kRouter) router_has_ = 0;
  }
  if (record.kind == port::Routed::kKind) {
    on_routed(event, from_record<port::Routed>(record), out);
  } else if (record.kind == port::EligibleChanged::kKind) {
    const auto changed = from_record<port::EligibleChanged>(record);
    eligible_[changed.engine] = {changed.eligible, event.seq};
  } else if (record.kind == port::VersionPublished::kKind) {
    published_ = std::max(published_, from_record<port::VersionPublished>(record).version);
  } else if (record.kind == port::TrainingWorldChanged::kKind) {
    const Version version = from_record<port::TrainingWorldChanged>(record).version;
    if (version >= published_) return;
    before_ = published_;
    published_ = version;
    router_has_ = std::min(router_has_, version);
  } else if (record.kind == port::VersionSet::kKind) {
    const auto set = from_record<port::VersionSet>(record);
    if (set.role != port::Role::kRouter) return;
    router_has_ = set.version;
    before_ = 0;
    router_seq_ = event.seq;
  } else {
    states_seen_ = states_seen_ || record.kind == port::WeightsState::kKind;
    weights_.on_event(event);
  }
}

RouteJudge::Lack RouteJudge::lack_of(EngineId engine, Version version) const {
  if (!weights_.knows(engine)) return {say("engine ", engine, " is not declared"), 0, false};
  for (const EngineWeights::Rank& rank : weights_.ranks(engine)) {
    const std::string who = setup_->name_of(rank.node);
    if (rank.dead) return {who + " is dead", rank.since, true};
    if (rank.state == port::ServeState::kQuarantined) {
      return {who + " refuses to serve its weights", rank.since, !setup_->pause_around_update};
    }
    // Before the first update there is nothing to be behind of, and a server that still loads says so itself.
    if (version == 0) continue;
    if (!rank.loaded) return {who + " has no proven weights", rank.since, true};
    if (rank.version < version) return {say(who, " holds version ", rank.version), rank.since, rank.restarted};
  }
  return {};
}

void RouteJudge::on_routed(const port::TraceEvent& event, const port::Routed& routed, Violations& out) {
  const auto report = [&](const std::string& why, std::uint64_t related) {
    Violation found = violation_at(InvariantId::kInv9, event,
                                   say(setup_->name_of(event.node), " sent sample ", routed.sample, " to engine ",
                                       routed.engine, " for version ", routed.version, why));
    found.version = routed.version;
    if (related != 0) found.related.push_back(related);
    out.add(std::move(found));
  };
  if (routed.version > std::max(published_, before_)) {
    return report(say(", but the last published version is ", published_), 0);
  }
  if (routed.version < router_has_) return report(say(", but it knows version ", router_has_), router_seq_);
  if (!states_seen_) return;
  const Lack lack = lack_of(routed.engine, routed.version);
  if (lack.words.empty()) return;
  const Eligible* eligible = eligible_.find(routed.engine);
  const bool declared_before = eligible != nullptr && eligible->on && eligible->seq < lack.since;
  if (lack.may_be_news && declared_before) return;
  report(say(", but ", lack.words), lack.since);
}

}  // namespace areal::sim
