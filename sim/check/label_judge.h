// INV-1: a token's recorded version is the version of the bytes that made it, and not older than the pinned one.
//
// Truth: what each engine's ranks held after their fences (engine_weights.h), and what its server said it decoded. The
// server is to blame if it names a wrong version, the pool if it stores another one than it was told.
#pragma once
#include "sim/check/engine_weights.h"

namespace areal::sim {

class LabelJudge final : public JudgeOf<LabelJudge> {
 public:
  explicit LabelJudge(const SetupPtr& setup) : setup_(setup), weights_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "label"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;

 private:
  struct Truth {
    std::uint64_t seq = 0;
    EngineId engine;
    Version version = 0;
    std::uint64_t tokens = 0;
    Digest128 digest;
  };
  void on_decoded(const port::TraceEvent& event, const port::Decoded& decoded, Violations& out);
  void on_stored(const port::TraceEvent& event, const port::SegmentStored& stored, Violations& out);
  // Takes the decoded segment that `stored` is about, and older ones of that sample.
  std::optional<Truth> take_truth(const port::SegmentStored& stored);

  SetupPtr setup_;
  EngineWeights weights_;
  bool decoded_seen_ = false;
  Flat<SampleId, std::vector<Truth>> decoded_;
};

}  // namespace areal::sim
