#include "sim/cli/seed_run.h"

#include <algorithm>
#include <atomic>
#include <exception>

#include "engine/base/digest.h"

namespace areal::cli {
namespace {

void set_text(std::string_view text, SeedDetail& detail) {
  const std::size_t size = std::min(text.size(), kDetailBytes - 1);
  std::ranges::copy(text.substr(0, size), detail.text.begin());
  detail.text[size] = '\0';
}

void set_end(SeedEnd end, SeedOutcome& outcome) {
  std::atomic_ref<SeedEnd>(outcome.end).store(end, std::memory_order_release);
}

void set_faults(const std::vector<sim::FaultCount>& faults, SeedOutcome& outcome) {
  for (std::size_t fault = 0; fault < std::min(faults.size(), kFaultsCounted); ++fault) {
    const std::uint64_t bit = std::uint64_t{1} << fault;
    if (faults[fault].active) outcome.faults_active |= bit;
    if (faults[fault].applied != 0) outcome.faults_applied |= bit;
    if (faults[fault].skipped != 0) outcome.faults_skipped |= bit;
  }
}

void describe(const Loaded& loaded, const sim::RunResult& result, SeedDetail& detail) {
  const auto violations = result.violations.all();
  detail.violations = static_cast<std::uint32_t>(violations.size());
  if (violations.empty()) {
    std::string text = result.why;
    if (text.empty()) text = sim::unmet_expectation(loaded.expect, result, *loaded.room->setup);
    set_text(text, detail);
    return;
  }
  const sim::Violation& first = violations.front();
  detail.invariant = static_cast<std::uint32_t>(first.invariant);
  detail.node = first.node.value;
  detail.seq = first.seq;
  detail.at_ns = first.at.ns;
  detail.has_version = first.version.has_value();
  detail.version = first.version.value_or(0);
  set_text(first.message, detail);
}

bool is_equal(const sim::RunResult& left, const sim::RunResult& right) {
  return left.digest == right.digest && left.verdict == right.verdict && left.events == right.events;
}

}  // namespace

SeedEnd end_of(const Loaded& loaded, const sim::RunResult& result) {
  const std::string unmet = sim::unmet_expectation(loaded.expect, result, *loaded.room->setup);
  if (unmet.empty() && loaded.expect.verdict == config::Verdict::kHeld) return SeedEnd::kHeld;
  switch (result.verdict) {
    case config::Verdict::kHeld:
      return unmet.empty() ? SeedEnd::kHeld : SeedEnd::kUnmet;
    case config::Verdict::kSafety:
      return SeedEnd::kSafety;
    case config::Verdict::kInconclusive:
      return SeedEnd::kInconclusive;
    case config::Verdict::kLiveness:
      return SeedEnd::kLiveness;
  }
  return SeedEnd::kBroken;
}

bool is_sampled(std::uint64_t seed, unsigned percent) { return hash_words(std::span(&seed, 1)).low % 100 < percent; }

void run_seed(const Loaded& loaded, sim::Profile profile, std::uint64_t seed, unsigned recheck_percent,
              SeedOutcome& outcome, SeedDetail& detail) {
  try {
    const sim::RunSettings settings = settings_of(loaded, seed, profile);
    const auto run = sim::run_once(settings, nullptr);
    if (!run) return set_broken(run.error().detail, outcome, detail);
    const SeedEnd end = end_of(loaded, *run);
    outcome.digest = run->digest;
    outcome.events = run->events;
    outcome.ended_at_ns = run->ended_at.ns;
    outcome.published = run->published;
    set_faults(run->faults, outcome);
    if (end != SeedEnd::kHeld) describe(loaded, *run, detail);
    if (end != SeedEnd::kHeld || is_sampled(seed, recheck_percent)) {
      const auto again = sim::run_once(settings, nullptr);
      outcome.repeated = true;
      outcome.changed = !again || !is_equal(*run, *again);
    }
    set_end(end, outcome);
  } catch (const std::exception& error) {
    set_broken(error.what(), outcome, detail);
  }
}

void set_broken(const std::string& why, SeedOutcome& outcome, SeedDetail& detail) {
  detail.violations = 0;
  set_text(why, detail);
  set_end(SeedEnd::kBroken, outcome);
}

}  // namespace areal::cli
