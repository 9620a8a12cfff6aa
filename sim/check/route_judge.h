// INV-9: the router sends work only to engines that are proven to hold the published version.
//
// Proven: every rank said, in its current incarnation, that it serves (or is paused) at the version that the router
// knows or a later one, and none refuses to serve. What the router cannot know yet is no fault of its: if it had
// declared the engine eligible before a rank died or restarted (or, where updates do not pause generation, before it
// refused to serve), only a new declaration or a route after it withdrew the engine counts. A router that declares
// nothing is held to the strict rule.
#pragma once
#include "sim/check/engine_weights.h"

namespace areal::sim {

class RouteJudge final : public JudgeOf<RouteJudge> {
 public:
  explicit RouteJudge(const SetupPtr& setup) : setup_(setup), weights_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "route"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;

 private:
  struct Eligible {
    bool on = false;
    std::uint64_t seq = 0;  // 0: never declared.
  };
  struct Lack {
    std::string words;  // Empty: the engine is proven.
    std::uint64_t since = 0;
    bool may_be_news = false;  // The router may not have heard of it yet.
  };
  void on_routed(const port::TraceEvent& event, const port::Routed& routed, Violations& out);
  [[nodiscard]] Lack lack_of(EngineId engine, Version version) const;

  SetupPtr setup_;
  EngineWeights weights_;
  Incarnations incarnations_;
  bool states_seen_ = false;
  Version published_ = 0;   // The greatest since training last went back.
  Version before_ = 0;      // What was published when it did, until the router was told the new version.
  Version router_has_ = 0;  // What the router made its own.
  std::uint64_t router_seq_ = 0;
  Flat<EngineId, Eligible> eligible_;
};

}  // namespace areal::sim
