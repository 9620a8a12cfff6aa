#include "sim/cli/judge_profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/base/text.h"

namespace areal::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kClockReads = 10'000;

std::int64_t since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

class TimedJudge final : public sim::Judge {
 public:
  TimedJudge(std::unique_ptr<sim::Judge> judge, JudgeCost& cost) : judge_(std::move(judge)), cost_(cost) {}

  [[nodiscard]] std::string_view name() const override { return judge_->name(); }
  [[nodiscard]] std::span<const KindId> interest() const override { return judge_->interest(); }
  void on_event(const port::TraceEvent& event, sim::Violations& out) override {
    const auto begin = Clock::now();
    judge_->on_event(event, out);
    ++cost_.events;
    cost_.wall_ns += since(begin);
  }
  void at_end(bool finished, sim::Violations& out) override { judge_->at_end(finished, out); }
  void measure(std::vector<sim::Measure>& out) const override { judge_->measure(out); }
  [[nodiscard]] std::unique_ptr<sim::Judge> clone() const override {
    return std::make_unique<TimedJudge>(judge_->clone(), cost_);
  }

 private:
  std::unique_ptr<sim::Judge> judge_;
  JudgeCost& cost_;
};

// What two readings of the clock around nothing come to.
double clock_cost_ns() {
  std::int64_t total = 0;
  for (int i = 0; i < kClockReads; ++i) total += since(Clock::now());
  return static_cast<double>(total) / kClockReads;
}

}  // namespace

std::unique_ptr<sim::Judge> JudgeProfile::around(std::unique_ptr<sim::Judge> judge) {
  costs_.push_back(std::make_unique<JudgeCost>(JudgeCost{std::string(judge->name())}));
  return std::make_unique<TimedJudge>(std::move(judge), *costs_.back());
}

std::string JudgeProfile::table(double wall_s) const {
  const double clock_ns = clock_cost_ns();
  std::vector<const JudgeCost*> sorted;
  for (const auto& cost : costs_) sorted.push_back(cost.get());
  const auto own_ns = [&](const JudgeCost& cost) {
    return std::max(0.0, static_cast<double>(cost.wall_ns) - clock_ns * static_cast<double>(cost.events));
  };
  std::ranges::sort(sorted, std::greater{}, [&](const JudgeCost* cost) { return own_ns(*cost); });
  std::string text =
      fmt::format("\n{:<16} {:>10} {:>10} {:>10} {:>8}\n", "judge", "events", "ms", "ns/event", "of wall");
  double all_ns = 0;
  for (const JudgeCost* cost : sorted) {
    const double own = own_ns(*cost);
    all_ns += own;
    const double each = cost->events == 0 ? 0 : own / static_cast<double>(cost->events);
    text += fmt::format("{:<16} {:>10} {:>10.2f} {:>10.0f} {:>7.1f}%\n", cost->name, count_text(cost->events),
                        own / 1e6, each, own / wall_s / 1e7);
  }
  text += fmt::format("{:<16} {:>10} {:>10.2f} {:>10} {:>7.1f}%   the clock's own {:.0f} ns a call are taken off\n",
                      "all", "", all_ns / 1e6, "", all_ns / wall_s / 1e7, clock_ns);
  return text;
}

}  // namespace areal::cli
