// INV-DELTA-COLL-COUNT, INV-DELTA-QUIET-YIELD and INV-DELTA-SUPERSET: reconstruction runs to its end on every rank,
// hands on nothing while reductions are pending, and its masks leave no changed element out.
//
// A rank has begun a window when it posted a reduction of it or said that it compared it; it is over when it posted its
// second vote. What ranks began is compared when the attempt ends, so that who stopped early is named although the
// others wait for it. Who stops early breaks INV-6 too.
#pragma once
#include "sim/check/attempt_key.h"
#include "sim/check/course.h"
#include "sim/check/flat.h"
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class WindowJudge final : public JudgeOf<WindowJudge> {
 public:
  explicit WindowJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "window"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;
  void at_end(bool finished, Violations& out) override;

 private:
  struct Member {
    Course course;
    std::uint32_t votes = 0;
  };
  void on_post(const port::TraceEvent& event, const port::PostBatch& batch, Violations& out);
  void on_compared(const port::TraceEvent& event, const port::WindowCompared& compared, Violations& out);
  void on_packed(const port::TraceEvent& event, const port::DeltaPacked& packed, Violations& out) const;
  static void begin_window(Course& course, std::uint64_t window, std::uint64_t seq);
  void close(const port::TraceEvent& event, Violations& out);
  void report(const port::TraceEvent& event, InvariantId invariant, Version version, const std::string& why,
              Violations& out) const;

  SetupPtr setup_;
  Incarnations incarnations_;
  AttemptKey key_;
  Flat<NodeId, Member> members_;
  port::TraceEvent last_;
};

}  // namespace areal::sim
