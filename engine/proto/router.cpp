#include "engine/proto/router.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace areal::proto {
namespace {

void refuse(const port::MessageIn& message, Refusal reason, std::uint64_t detail, Outbox& out) {
  out.note(port::Refused{message.body.kind, reason, message.from, detail});
}

// Whether `version` of `epoch` comes before what is known: a later training epoch is another history.
bool is_older(Epoch epoch, Version version, Epoch known_epoch, Version known_version) {
  return epoch < known_epoch || (epoch == known_epoch && version < known_version);
}

}  // namespace

Router::Router(ClusterMap cluster, EligiblePolicy policy)
    : cluster_(std::move(cluster)),
      policy_(policy),
      engines_(cluster_.engines),
      ranks_(cluster_.engine_ranks.size()),
      proofs_(cluster_.engines) {}

void Router::step(const Input& input, Outbox& out) {
  const auto* message = std::get_if<port::MessageIn>(&input);
  if (message == nullptr || message->kind == port::MessageKind::kReply) return;
  const Record& body = message->body;
  const bool known =
      dispatch_record<RouteRequest>(body, [&](const RouteRequest& route) { on_route(*message, route, out); }) ||
      dispatch_record<SetVersion>(body, [&](const SetVersion& set) { on_set_version(*message, set, out); }) ||
      dispatch_record<EngineMember>(body, [&](const EngineMember& member) { on_member(*message, member, out); }) ||
      dispatch_record<WorkerExited>(body, [&](const WorkerExited& exited) { on_exited(*message, exited, out); }) ||
      dispatch_record<WorkerStarted>(body, [&](const WorkerStarted& started) { on_started(*message, started, out); });
  if (!known) refuse(*message, Refusal::kUnknown, body.kind, out);
}

void Router::on_route(const port::MessageIn& message, const RouteRequest& route, Outbox& out) {
  if (!routes_.admit(message, out)) return;
  RouteReply reply{route.sample, Outcome::kRefused, EngineId{}, version_};
  const auto eligible = static_cast<std::uint64_t>(std::ranges::count_if(engines_, &EngineStanding::eligible));
  if (eligible > 0) {
    std::uint64_t skip = picks_++ % eligible;
    std::uint64_t engine = 0;
    while (!engines_[engine].eligible || skip-- > 0) ++engine;
    reply.outcome = Outcome::kOk;
    reply.engine = EngineId{engine};
    out.note(port::Routed{route.sample, reply.engine, version_});
  }
  routes_.reply(Callee::key_of(message), reply, out);
}

void Router::on_set_version(const port::MessageIn& message, const SetVersion& set, Outbox& out) {
  if (message.from != cluster_.controller) return refuse(message, Refusal::kUnknown, set.version, out);
  if (!versions_.admit(message, out)) return;
  if (is_older(set.training_epoch, set.version, training_epoch_, version_)) {
    refuse(message, Refusal::kVersionOrder, set.version, out);
  } else {
    training_epoch_ = set.training_epoch;
    version_ = set.version;
    announced_ = true;
    for (std::size_t engine = 0; engine < engines_.size(); ++engine) judge(engine, out);
  }
  versions_.reply(Callee::key_of(message), Ack{}, out);
}

void Router::on_member(const port::MessageIn& message, const EngineMember& member, Outbox& out) {
  if (message.from != cluster_.gateway || member.engine.value >= proofs_.size()) {
    return refuse(message, Refusal::kUnknown, member.engine.value, out);
  }
  if (!members_.admit(message, out)) return;
  const Proof& proof = proofs_[member.engine.value];
  if (is_older(member.training_epoch, member.version, proof.training_epoch, proof.version)) {
    refuse(message, Refusal::kVersionOrder, member.version, out);
  } else {
    proofs_.set(member.engine.value, {true, member.training_epoch, member.version, member.incarnations});
    judge(member.engine.value, out);
  }
  members_.reply(Callee::key_of(message), Ack{}, out);
}

void Router::on_exited(const port::MessageIn& message, const WorkerExited& exited, Outbox& out) {
  // The gateway warns of an engine that it will tell to refuse, whether or not the guard's report is through.
  const bool may_say = is_guard(message.from) || message.from == cluster_.gateway;
  if (!may_say) return refuse(message, Refusal::kUnknown, exited.node.value, out);
  if (!members_.admit(message, out)) return;
  const std::optional<std::size_t> index = rank_of(exited.node);
  if (index.has_value() && exited.incarnation >= ranks_[*index].incarnation) {
    const std::size_t engine = *index / cluster_.engine_world;
    if (ranks_[*index].alive) engines_.edit(engine, [](EngineStanding& standing) { ++standing.dead; });
    ranks_.set(*index, {exited.incarnation, false});
    judge(engine, out);
  }
  members_.reply(Callee::key_of(message), Ack{}, out);
}

void Router::on_started(const port::MessageIn& message, const WorkerStarted& started, Outbox& out) {
  if (!is_guard(message.from)) return refuse(message, Refusal::kUnknown, started.node.value, out);
  if (!members_.admit(message, out)) return;
  const std::optional<std::size_t> index = rank_of(started.node);
  if (index.has_value() && started.incarnation > ranks_[*index].incarnation) {
    const std::size_t engine = *index / cluster_.engine_world;
    if (!ranks_[*index].alive) engines_.edit(engine, [](EngineStanding& standing) { --standing.dead; });
    ranks_.set(*index, {started.incarnation, true});
    judge(engine, out);
  }
  members_.reply(Callee::key_of(message), Ack{}, out);
}

void Router::judge(std::size_t engine, Outbox& out) {
  EngineStanding standing = engines_[engine];
  standing.member = is_member(engine);
  const bool was_eligible = standing.eligible;
  const bool eligible = policy_(standing);
  standing.eligible = eligible;
  engines_.set(engine, standing);
  if (eligible != was_eligible) out.note(port::EligibleChanged{EngineId{engine}, eligible, version_});
}

bool Router::is_member(std::size_t engine) const {
  const Proof& proof = proofs_[engine];
  if (!announced_ || !proof.given || proof.version < version_) return false;
  std::uint64_t known = 0;
  for (std::uint32_t i = 0; i < cluster_.engine_world; ++i) {
    known += std::max<std::uint64_t>(1, ranks_[engine * cluster_.engine_world + i].incarnation);
  }
  return known <= proof.incarnations;
}

std::optional<std::size_t> Router::rank_of(NodeId node) const {
  const auto found = std::ranges::find(cluster_.engine_ranks, node);
  if (found == cluster_.engine_ranks.end()) return std::nullopt;
  return static_cast<std::size_t>(found - cluster_.engine_ranks.begin());
}

bool Router::is_guard(NodeId node) const { return std::ranges::find(cluster_.guards, node) != cluster_.guards.end(); }

}  // namespace areal::proto
