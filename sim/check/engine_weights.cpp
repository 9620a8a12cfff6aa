// Follows the weights of every engine through the trace.
#include "sim/check/engine_weights.h"

namespace areal::sim {

EngineWeights::EngineWeights(const SetupPtr& setup) {
  engines_.resize(setup->engines());
  for (std::uint32_t e = 0; e < engines_.size(); ++e) {
    Engine& engine = engines_[e];
    for (const NodeId node : setup->ranks_of(EngineId{e})) {
      if (node.value >= places_.size()) places_.resize(node.value + 1);
      places_[node.value] = {e, static_cast<std::uint32_t>(engine.ranks.size())};
      Rank rank;
      rank.node = node;
      rank.place = static_cast<std::uint32_t>(engine.ranks.size());
      engine.ranks.push_back(rank);
    }
  }
}

EngineWeights::Rank* EngineWeights::rank_of(NodeId node, Engine** engine) {
  if (node.value >= places_.size() || places_[node.value].engine == kNoRank) return nullptr;
  *engine = &engines_[places_[node.value].engine];
  return &(*engine)->ranks[places_[node.value].place];
}

const EngineWeights::Rank* EngineWeights::rank_at(NodeId node) const {
  if (node.value >= places_.size() || places_[node.value].engine == kNoRank) return nullptr;
  return &engines_[places_[node.value].engine].ranks[places_[node.value].place];
}

void EngineWeights::forget(NodeId node, std::uint64_t seq, bool dead) {
  Engine* engine = nullptr;
  Rank* rank = rank_of(node, &engine);
  if (rank == nullptr) return;
  rank->dead = dead;
  rank->restarted = true;
  rank->loaded = false;
  rank->applying = 0;
  rank->since = seq;
  rank->state = port::ServeState::kLoading;
  rank->version = 0;
}

void EngineWeights::on_event(const port::TraceEvent& event) {
  const Record& record = subject(event);
  if (const auto node = incarnations_.renewed(event)) {
    const bool dead = record.kind == port::ProcessChanged::kKind && !from_record<port::ProcessChanged>(record).alive;
    forget(*node, event.seq, dead);
  }
  Engine* engine = nullptr;
  Rank* rank = rank_of(event.node, &engine);
  if (rank == nullptr) return;
  if (record.kind == port::ComputeDone::kKind) {
    const auto done = from_record<port::ComputeDone>(record);
    if (done.what == port::ComputeKind::kLoadModel && done.outcome == port::Outcome::kOk) on_loaded(event, done.digest);
  } else if (record.kind == port::ApplyStarted::kKind) {
    rank->applying = event.seq;
  } else if (record.kind == port::Applied::kKind) {
    on_applied(event, from_record<port::Applied>(record));
  } else if (record.kind == port::WeightsState::kKind) {
    const auto state = from_record<port::WeightsState>(record);
    rank->dead = false;
    rank->loaded = true;
    rank->state = state.state;
    rank->version = state.version;
    rank->since = event.seq;
    if (state.state == port::ServeState::kServing || state.state == port::ServeState::kPaused) rank->restarted = false;
  }
}

void EngineWeights::on_applied(const port::TraceEvent& event, const port::Applied& applied) {
  Engine* engine = nullptr;
  Rank* rank = rank_of(event.node, &engine);
  if (rank == nullptr) return;
  rank->applying = 0;
  Held& pending = engine->pending;
  const bool same =
      pending.epoch == applied.epoch && pending.version == applied.version && pending.attempt == applied.attempt;
  if (!same || engine->have.empty()) {
    pending = Held{applied.epoch, applied.version, applied.attempt, 0, {}, {}};
    engine->have.clear();
  }
  pending.seq = event.seq;
  collect(*engine, pending, engine->have, rank->place, applied.digest);
}

void EngineWeights::on_loaded(const port::TraceEvent& event, const Digest128& digest) {
  Engine* engine = nullptr;
  const Rank* rank = rank_of(event.node, &engine);
  if (rank == nullptr) return;
  engine->loading.seq = event.seq;
  collect(*engine, engine->loading, engine->loaded, rank->place, digest);
}

void EngineWeights::collect(Engine& engine, Held& held, std::vector<bool>& have, std::uint32_t place,
                            const Digest128& digest) {
  held.of_ranks.resize(engine.ranks.size());
  have.resize(engine.ranks.size());
  held.of_ranks[place] = digest;
  have[place] = true;
  if (std::ranges::find(have, false) != have.end()) return;
  DigestSum sum;
  for (const Digest128& member : held.of_ranks) sum.add(member);
  held.sum = sum.total;
  for (Held& known : engine.held) {
    if (known.epoch == held.epoch && known.version == held.version) {
      known = held;
      return;
    }
  }
  engine.held.push_back(held);
}

const EngineWeights::Held* EngineWeights::find(EngineId engine, Version version) const {
  if (!knows(engine)) return nullptr;
  const auto& all = engines_[engine.value].held;
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const Held& held) { return held.version == version; });
  return found == all.rend() ? nullptr : &*found;
}

bool EngineWeights::holds(EngineId engine, Version version, const Digest128& digest) const {
  if (!knows(engine)) return false;
  const auto& all = engines_[engine.value].held;
  return std::any_of(all.rbegin(), all.rend(),
                     [&](const Held& held) { return held.version == version && matches(held, digest); });
}

bool EngineWeights::matches(const Held& held, const Digest128& digest) {
  return held.sum == digest || std::ranges::find(held.of_ranks, digest) != held.of_ranks.end();
}

std::optional<Version> EngineWeights::version_of(EngineId engine, const Digest128& digest) const {
  if (!knows(engine)) return std::nullopt;
  const auto& all = engines_[engine.value].held;
  for (auto held = all.rbegin(); held != all.rend(); ++held) {
    if (matches(*held, digest)) return held->version;
  }
  return std::nullopt;
}

}  // namespace areal::sim
