#include "sim/cli/seeds_report.h"

#include <algorithm>

#include "sim/check/invariants.h"

namespace areal::cli {
namespace {

int rank_of(int code) {
  static constexpr std::array<int, 6> kWorstFirst{1, 4, 70, 3, 2, 0};
  const auto place = std::ranges::find(kWorstFirst, code);
  return static_cast<int>(place - kWorstFirst.begin());
}

void count_bits(std::uint64_t bits, std::array<std::uint64_t, kFaultsCounted>& counts) {
  for (std::size_t fault = 0; fault < kFaultsCounted; ++fault) counts[fault] += bits >> fault & 1U;
}

std::string group_name(const SeedOutcome& outcome, const SeedDetail& detail) {
  if (outcome.changed && (outcome.end == SeedEnd::kHeld)) return "not deterministic";
  if (detail.violations == 0) return std::string(to_text(outcome.end));
  return std::string(sim::info_of(static_cast<sim::InvariantId>(detail.invariant)).name);
}

}  // namespace

std::string_view to_text(SeedEnd end) {
  static constexpr std::array<std::string_view, kSeedEnds> kWords{
      "not run", "held", "not as expected", "violated", "inconclusive", "stuck", "broken"};
  return kWords[static_cast<std::size_t>(end)];
}

SeedCounts count_seeds(std::span<const SeedOutcome> outcomes) {
  SeedCounts counts;
  for (const SeedOutcome& outcome : outcomes) {
    ++counts.of_end[static_cast<std::size_t>(outcome.end)];
    if (outcome.end == SeedEnd::kNotRun) continue;
    ++counts.done;
    counts.repeated += outcome.repeated ? 1 : 0;
    counts.changed += outcome.changed ? 1 : 0;
    counts.events += outcome.events;
    count_bits(outcome.faults_active, counts.active);
    count_bits(outcome.faults_applied, counts.applied);
    count_bits(outcome.faults_skipped, counts.skipped);
  }
  return counts;
}

int exit_code(const SeedOutcome& outcome) {
  const int changed = outcome.changed ? 4 : 0;
  switch (outcome.end) {
    case SeedEnd::kNotRun:
    case SeedEnd::kHeld:
      return changed;
    case SeedEnd::kUnmet:
    case SeedEnd::kSafety:
      return 1;
    case SeedEnd::kInconclusive:
      return worse(2, changed);
    case SeedEnd::kLiveness:
      return worse(3, changed);
    case SeedEnd::kBroken:
      return worse(70, changed);
  }
  return 70;
}

int worse(int left, int right) { return rank_of(left) <= rank_of(right) ? left : right; }

std::vector<SeedGroup> group_failures(const SeedsReport& report) {
  std::vector<SeedGroup> groups;
  for (std::size_t index = 0; index < report.outcomes.size(); ++index) {
    const SeedOutcome& outcome = report.outcomes[index];
    if (exit_code(outcome) == 0) continue;
    std::string name = group_name(outcome, report.details[index]);
    const auto place = std::ranges::find_if(
        groups, [&](const SeedGroup& group) { return group.name == name && group.end == outcome.end; });
    SeedGroup& group = place != groups.end() ? *place : groups.emplace_back(std::move(name), outcome.end);
    group.indices.push_back(index);
  }
  std::ranges::stable_sort(
      groups, {}, [&](const SeedGroup& group) { return rank_of(exit_code(report.outcomes[group.indices.front()])); });
  return groups;
}

}  // namespace areal::cli
