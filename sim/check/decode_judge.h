// INV-8: tokens are made only on whole, proven weights, and running work is not ended unless the pause mode says so.
//
// Found: bytes that are of no version that the engine ever held; tokens that end while any of its ranks is being
// written; a server that decodes while its own rank is being written or refused; an apply over weights that are served
// and not paused; and, in pause mode in_place, work that is stopped by the pause itself.
#pragma once
#include "sim/check/engine_weights.h"

namespace areal::sim {

class DecodeJudge final : public JudgeOf<DecodeJudge> {
 public:
  explicit DecodeJudge(const SetupPtr& setup) : setup_(setup), weights_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "decode"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;

 private:
  void on_decoded(const port::TraceEvent& event, const port::Decoded& decoded, Violations& out) const;
  void on_apply(const port::TraceEvent& event, const port::ApplyStarted& apply, Violations& out) const;
  // A server begins (or goes on) to decode.
  void on_open(const port::TraceEvent& event, Violations& out) const;
  void on_stop(const port::TraceEvent& event, Violations& out) const;

  struct Pause {
    bool on = false;
    std::uint64_t cause = 0;  // seq of the input that led to it.
    std::uint64_t seq = 0;
  };
  SetupPtr setup_;
  EngineWeights weights_;
  Flat<EngineId, Pause> paused_;
};

}  // namespace areal::sim
