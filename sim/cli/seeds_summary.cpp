#include "sim/cli/seeds_summary.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "engine/base/text.h"
#include "sim/cli/run_output.h"

namespace areal::cli {
namespace {

constexpr double kLineEveryS = 5;
constexpr std::size_t kSeedsShown = 6;
constexpr std::size_t kGroupsShown = 12;

// "1.2 M", "97.4 k", "12.3": three digits are enough for a rate.
std::string rate_text(double rate) {
  if (rate >= 1e6) return fmt::format("{:.1f} M", rate / 1e6);
  if (rate >= 1e4) return fmt::format("{:.1f} k", rate / 1e3);
  return fmt::format("{:.1f}", rate);
}

std::string seconds_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{} h {} m", whole / 3600, whole % 3600 / 60);
  return whole >= 60 ? fmt::format("{} m {} s", whole / 60, whole % 60) : fmt::format("{} s", whole);
}

double per_second(std::uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

void print_faults(const SeedsReport& report, const SeedCounts& counts) {
  const std::size_t known = std::min(report.faults.size(), kFaultsCounted);
  for (std::size_t fault = 0; fault < known; ++fault) {
    const PlannedName& name = report.faults[fault];
    std::string rest = fmt::format("applied in {} of {} seeds", counts.applied[fault], counts.done);
    if (counts.applied[fault] == 0)
      rest = fmt::format("NEVER applied, on in {} of {} seeds", counts.active[fault], counts.done);
    if (counts.skipped[fault] != 0) rest += fmt::format(", forbidden by the budget in {}", counts.skipped[fault]);
    fmt::print("{:<8} {:>2}  {:<18} {:<20} {}\n", fault == 0 ? "faults" : "", fault + 1, areal::to_text(name.kind),
               name.node.empty() ? "*" : name.node, rest);
  }
  if (report.faults.size() > known)
    fmt::print("         {} more faults are not counted\n", report.faults.size() - known);
}

void print_group(const SeedsReport& report, const SeedGroup& group) {
  std::string seeds;
  for (std::size_t i = 0; i < std::min(group.indices.size(), kSeedsShown); ++i) {
    seeds += " " + seed_text(report.seed_of(group.indices[i]));
  }
  if (group.indices.size() > kSeedsShown) seeds += " ...";
  const std::string name = group.name == to_text(group.end) ? "" : "  " + group.name;
  fmt::print("{}{}  {} seed{}:{}\n", to_text(group.end), name, group.indices.size(),
             group.indices.size() == 1 ? "" : "s", seeds);
  const SeedDetail& detail = report.details[group.indices.front()];
  if (detail.text[0] == '\0') return;
  std::string where;
  if (detail.violations != 0) {
    where = fmt::format("event {}, t={}, {}: ", count_text(detail.seq), to_text(Duration{detail.at_ns}),
                        detail.node == 0 ? "no node" : report.node_name(detail.node));
  }
  fmt::print("      first: {}{}\n", where, detail.text.data());
}

}  // namespace

SeedsProgress::SeedsProgress(std::uint64_t count, bool quiet)
    : count_(count), quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0), next_line_s_(kLineEveryS) {}

void SeedsProgress::tell(const PoolProgress& progress) {
  if (quiet_ || progress.done == 0 || (!terminal_ && progress.elapsed_s < next_line_s_)) return;
  next_line_s_ = progress.elapsed_s + kLineEveryS;
  const double rate = per_second(progress.done, progress.elapsed_s);
  const double left_s = static_cast<double>(count_ - progress.done) / rate;
  fmt::print(stderr, "{}{} of {} seeds, {} failed   {} seeds/s   {} left{}", terminal_ ? "\r" : "", progress.done,
             count_, progress.failed, rate_text(rate), seconds_text(left_s), terminal_ ? "\x1b[K" : "\n");
}

void SeedsProgress::end() {
  if (!quiet_ && terminal_) fmt::print(stderr, "\r\x1b[K");
}

void print_summary(const SeedsReport& report) {
  const SeedCounts counts = count_seeds(report.outcomes);
  std::string text = fmt::format("{} seeds: {} held, {} violated", counts.done, counts.of(SeedEnd::kHeld),
                                 counts.of(SeedEnd::kSafety));
  for (const SeedEnd end : {SeedEnd::kLiveness, SeedEnd::kInconclusive, SeedEnd::kUnmet, SeedEnd::kBroken}) {
    if (counts.of(end) != 0) text += fmt::format(", {} {}", counts.of(end), to_text(end));
  }
  fmt::print("{}   {} seeds/s   {} events/s\n", text, rate_text(per_second(counts.done, report.wall_s)),
             rate_text(per_second(counts.events, report.wall_s)));
  fmt::print("run twice: {} seeds, {} came out otherwise   wall {}\n", counts.repeated, counts.changed,
             seconds_text(report.wall_s));
  print_faults(report, counts);
  const std::vector<SeedGroup> groups = group_failures(report);
  for (std::size_t i = 0; i < std::min(groups.size(), kGroupsShown); ++i) print_group(report, groups[i]);
  if (groups.size() > kGroupsShown) fmt::print("and {} more groups\n", groups.size() - kGroupsShown);
}

}  // namespace areal::cli
