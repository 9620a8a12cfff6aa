// INV-2: a version is published, and set by anybody, only after every member entered, applied, fenced and acknowledged
// it.
#pragma once
#include "sim/check/flat.h"
#include "sim/check/judge.h"

namespace areal::sim {

class PublishJudge final : public JudgeOf<PublishJudge> {
 public:
  explicit PublishJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "publish"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;

 private:
  struct Attempted {
    Epoch epoch = 0;
    Version version = 0;
    Attempt attempt = 0;
    auto operator<=>(const Attempted&) const = default;
  };
  struct Member {
    bool unfenced = false;  // Weights were written since the last device fence.
    Attempted entered;
    Attempted applied;
    bool applied_unfenced = false;
    std::uint64_t applied_seq = 0;
  };
  void on_published(const port::TraceEvent& event, const port::VersionPublished& published, Violations& out);
  // What `node` lacks for this attempt; empty if nothing.
  [[nodiscard]] std::string lack_of(const JudgeNode& node, const Attempted& wanted, std::uint64_t* related) const;

  SetupPtr setup_;
  Flat<NodeId, Member> members_;
  bool entered_seen_ = false;
  Version published_ = 0;  // The greatest since training last went back.
};

}  // namespace areal::sim
