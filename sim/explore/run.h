// One run of a scenario under one seed: world, judges, verdict.
//
// A run ends when the training loop says so, when a judge found a violation (unless asked to go on), when nothing can
// happen any more, when nothing has come forward for two hours of virtual time, or at its budget. The digest
// covers every event, state and decision.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/port/trace_sink.h"
#include "sim/check/judge.h"
#include "sim/check/stuck.h"
#include "sim/world/world.h"

namespace areal::sim {

struct RunSettings {
  std::shared_ptr<const Room> room;
  std::uint64_t seed = 0;
  Profile profile = Profile::kCalm;
  std::vector<config::RuleSpec> defect_rules;  // Of the defect that is on, before the scenario's own.
  std::optional<RecordedDecisions> decisions;  // Taken instead of drawn.
  std::vector<std::uint32_t> order;            // Of the scenario's interleave points; empty: as they come.
  bool stop_on_violation = true;
  std::optional<Instant> until;     // Stop there, inconclusive.
  std::uint64_t until_event = 0;    // Stop after this event; 0: no.
  JudgeWrapper* wrapper = nullptr;  // Of the judges; may be null.
};

struct RunResult {
  config::Verdict verdict = config::Verdict::kHeld;
  std::string why;  // Of a verdict that no violation explains.
  Digest128 digest;
  std::uint64_t events = 0;
  Instant ended_at;
  std::uint64_t published = 0;
  std::optional<port::RunEnded> end;
  Violations violations;
  std::vector<std::string> refusals;  // Reasons of Refused notes, each once.
  std::vector<WaitEdge> waits;        // If the run was stuck.
  std::vector<FaultCount> faults;
  std::vector<Measure> measures;
  std::vector<std::string> blind;
  bool order_kept = true;  // False: the points did not all happen, or not in the order asked for.
  std::string misfit;      // The first decision that did not fit a forced run.
};

// Told of everything a run does, and of the clock of its progress.
class RunObserver : public port::TraceSink {
 public:
  // After each event of the world; false ends the run as inconclusive (a user's interrupt).
  virtual bool keep_going(const World& world) { return static_cast<void>(world), true; }
};

// `observer` may be null. Errors: the scenario's rules or faults cannot be compiled.
Result<RunResult> run_once(const RunSettings& settings, RunObserver* observer);

// Whether this is the violation that an expectation names, by invariant, node and version; any, if it names none.
bool is_named(const config::ExpectSettings& expect, const Violation& violation, const JudgeSetup& setup);
// What of an expectation a result does not meet, in words; empty if it meets all.
std::string unmet_expectation(const config::ExpectSettings& expect, const RunResult& result, const JudgeSetup& setup);

// What `verdict` becomes by violations: safety before liveness before held.
config::Verdict verdict_with(config::Verdict verdict, const Violations& violations);

// 0 held, 1 safety, 2 inconclusive, 3 liveness.
int exit_code(config::Verdict verdict);

}  // namespace areal::sim
