// The router: which engine a sample goes to, round robin over the engines that hold the published version.
//
// An engine is a member by proof: the gateway's EngineMember names the version that all its ranks committed and the
// incarnations that did. It gets requests while that version is not older than the announced one, none of its ranks is
// known to be dead and none is known in a later incarnation. An announcement alone (SetVersion) proves nobody, so a
// replacement gets no traffic before it was part of an update, however late its news come. The order of picks depends
// on the declared order of engines alone, never on when they came. Versions only grow, but under a later training
// epoch.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/dense.h"
#include "engine/proto/callee.h"
#include "engine/proto/cluster.h"
#include "engine/proto/effect.h"
#include "engine/proto/input.h"
#include "engine/proto/messages.h"
#include "engine/proto/waits.h"

namespace areal::proto {

struct EngineStanding {
  bool member = false;     // Its proof is good for the announced version, and no rank is known in a later incarnation.
  std::uint32_t dead = 0;  // Ranks that are known to be dead.
  bool eligible = false;   // What the policy last said.
  AREAL_FIELDS(member, dead, eligible)
};

// Whether an engine may get requests. The product's answer is that of hold_published().
using EligiblePolicy = bool (*)(const EngineStanding& standing);
constexpr bool hold_published(const EngineStanding& standing) { return standing.member && standing.dead == 0; }

class Router {
 public:
  static constexpr std::string_view kName = "router";

  explicit Router(ClusterMap cluster, EligiblePolicy policy = hold_published);

  void step(const Input& input, Outbox& out);
  // A router never waits: it answers at once.
  void list_waits(WaitList& /*waits*/) const {}

  // REQUIRES: engine.value < the number of engines.
  [[nodiscard]] bool is_eligible(EngineId engine) const { return engines_[engine.value].eligible; }
  [[nodiscard]] Version version() const { return version_; }

  AREAL_FIELDS(training_epoch_, version_, picks_, engines_, ranks_, routes_, versions_, members_, proofs_, announced_)

 private:
  struct RankStanding {
    Incarnation incarnation = 0;  // 0: none was heard of.
    bool alive = true;
    AREAL_FIELDS(incarnation, alive)
  };

  struct Proof {
    bool given = false;
    Epoch training_epoch = 0;
    Version version = 0;
    std::uint64_t incarnations = 0;  // Sum over the engine's ranks.
    AREAL_FIELDS(given, training_epoch, version, incarnations)
  };

  void on_route(const port::MessageIn& message, const RouteRequest& route, Outbox& out);
  void on_set_version(const port::MessageIn& message, const SetVersion& set, Outbox& out);
  void on_member(const port::MessageIn& message, const EngineMember& member, Outbox& out);
  void on_exited(const port::MessageIn& message, const WorkerExited& exited, Outbox& out);
  void on_started(const port::MessageIn& message, const WorkerStarted& started, Outbox& out);
  void judge(std::size_t engine, Outbox& out);
  [[nodiscard]] std::optional<std::size_t> rank_of(NodeId node) const;
  [[nodiscard]] bool is_guard(NodeId node) const;
  [[nodiscard]] bool is_member(std::size_t engine) const;

  // Set at construction; not state.
  ClusterMap cluster_;
  EligiblePolicy policy_;

  Epoch training_epoch_ = 0;  // Of the announced version.
  Version version_ = 0;
  std::uint64_t picks_ = 0;
  Dense<EngineStanding> engines_;
  Dense<RankStanding> ranks_;  // As ClusterMap::engine_ranks.
  Dense<Proof> proofs_;        // By engine.
  bool announced_ = false;     // A version was.
  // One for each kind of asker: their request ids are counted apart.
  Callee routes_;
  Callee versions_;
  Callee members_;
};

}  // namespace areal::proto
