#include "sim/explore/run.h"

#include <algorithm>

#include "engine/port/trace_digest.h"
#include "sim/explore/order_keeper.h"
#include "sim/world/shadow.h"

namespace areal::sim {
namespace {

// A run in which nothing comes forward for so long is stuck; docs/scenarios.md says so.
constexpr Duration kStall = 7200_s;

// A check of the code itself failed inside a step: in a simulation a finding, not a crash. The world is not used again.
struct CheckFailure {
  std::string text;
};

[[noreturn]] void fail_check(const char* condition, const char* file, int line) {
  throw CheckFailure{std::string(condition) + " at " + file + ":" + std::to_string(line)};
}

// Puts the handler in place for as long as it lives.
class CheckGuard {
 public:
  CheckGuard() : before_(set_check_handler(fail_check)) {}
  CheckGuard(const CheckGuard&) = delete;
  CheckGuard& operator=(const CheckGuard&) = delete;
  ~CheckGuard() { set_check_handler(before_); }

 private:
  CheckHandler before_;
};

// Events between two audits of running digests.
constexpr std::uint64_t kAuditEvery = 65'536;

bool is_progress(KindId kind) {
  return kind == port::PhaseEntered::kKind || kind == port::VersionPublished::kKind ||
         kind == port::GroupFinished::kKind || kind == port::UpdateStarted::kKind;
}

// Hands every line to the digest, the judges and the observer.
class Listener final : public port::TraceSink {
 public:
  Listener(Judges judges, RunObserver* observer) : judges_(std::move(judges)), observer_(observer) {}

  void on_event(const port::TraceEvent& event) override {
    digest_.on_event(event);
    if (observer_ != nullptr) observer_->on_event(event);
    judges_.on_event(event, violations_);
    scope_.on_event(event);
    const KindId kind = subject(event).kind;
    if (is_progress(kind)) last_progress_ = event.at;
    if (kind == port::VersionPublished::kKind) ++published_;
    if (kind == port::UpdateEnded::kKind) {
      dispatch_record<port::UpdateEnded>(event.body, [&](const port::UpdateEnded& note) {
        if (note.outcome == port::Outcome::kOk) moved_ = note;
      });
    }
    if (kind == port::PhaseEntered::kKind) {
      dispatch_record<port::PhaseEntered>(event.body, [&](const port::PhaseEntered& note) { step_ = note.step; });
    }
    if (kind == port::Refused::kKind) {
      dispatch_record<port::Refused>(event.body, [&](const port::Refused& note) {
        const std::string reason(areal::to_text(note.reason));
        if (std::ranges::count(refusals_, reason) == 0) refusals_.push_back(reason);
      });
    }
  }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override {
    digest_.on_state(node, slot, digest);
    if (observer_ != nullptr) observer_->on_state(node, slot, digest);
  }
  void on_stream(std::uint32_t stream, std::string_view name) override {
    digest_.on_stream(stream, name);
    if (observer_ != nullptr) observer_->on_stream(stream, name);
  }
  void on_decision(const port::Decision& decision) override {
    digest_.on_decision(decision);
    if (observer_ != nullptr) observer_->on_decision(decision);
  }

  port::TraceDigest digest_;
  Judges judges_;
  RunObserver* observer_;
  Violations violations_;
  Instant last_progress_;
  std::uint64_t published_ = 0;
  std::uint64_t step_ = 0;
  ShadowScope scope_;
  std::optional<port::UpdateEnded> moved_;  // Ended well within the present event.
  std::vector<std::string> refusals_;
};

std::vector<WaitEdge> edges_of(const World& world) {
  std::vector<WaitEdge> edges;
  for (const RoomWait& wait : world.waits()) edges.push_back({wait.from, wait.on, wait.what});
  return edges;
}

class Run {
 public:
  Run(const RunSettings& settings, World world, std::optional<OrderKeeper> keeper, RunObserver* observer)
      : settings_(settings),
        world_(std::move(world)),
        keeper_(std::move(keeper)),
        observer_(observer),
        listener_(make_judges(settings.room->setup), observer) {
    if (settings.wrapper != nullptr) listener_.judges_.wrap(*settings.wrapper);
  }

  RunResult finish() {
    if (settings_.decisions) world_.decisions().force(*settings_.decisions, Beyond::kDraw);
    try {
      go();
    } catch (const CheckFailure& failure) {
      failed_check_ = failure.text;
    }
    conclude();
    return std::move(result_);
  }

 private:
  void go() {
    world_.start(listener_);
    while (may_go_on()) {
      if (keeper_) keeper_->before_step(world_);
      world_.step(listener_);
      if (listener_.moved_) look_at_shadow();
      if (world_.events() >= next_audit_) audit();
    }
    audit();
  }

  void audit() {
    next_audit_ = world_.events() + kAuditEvery;
    const std::vector<std::string> wrong = world_.audit();
    if (!wrong.empty() && failed_check_.empty()) failed_check_ = wrong.front();
  }

  void look_at_shadow() {
    const port::UpdateEnded moved = *std::exchange(listener_.moved_, std::nullopt);
    const auto difference = shadow_difference(world_, listener_.scope_);
    if (!difference) return;
    Violation found;
    found.invariant = difference->of_record ? InvariantId::kDeltaWatermark : InvariantId::kDeltaExact;
    found.seq = world_.events();
    found.at = world_.now();
    found.node = difference->node;
    found.version = moved.version;
    found.step = listener_.step_;
    found.message = "after update " + std::to_string(moved.version) + " " + difference->what;
    listener_.violations_.add(std::move(found));
  }

  bool may_go_on() {
    const config::BudgetSettings& budget = settings_.room->scenario.budget;
    if (world_.ended()) return false;
    if (settings_.stop_on_violation && !listener_.violations_.empty()) return false;
    if (!world_.has_event()) return give_up_stuck();
    if (world_.now() - listener_.last_progress_ > kStall) return give_up_stuck();
    if (world_.events() > budget.events_max) return stop(config::Verdict::kInconclusive, "the budget of events ended");
    if (settings_.until_event != 0 && world_.events() >= settings_.until_event) {
      return stop(config::Verdict::kInconclusive, "stopped where it was asked to");
    }
    if (settings_.until && world_.now() >= *settings_.until) {
      return stop(config::Verdict::kInconclusive, "stopped where it was asked to");
    }
    if (world_.now() > Instant{} + budget.virtual_max) {
      // Safety phase over: heal, and give the healthy room as long again as a stall takes.
      if (!healed_) world_.heal(listener_), healed_ = true;
      if (world_.now() > Instant{} + budget.virtual_max + kStall) return give_up_stuck();
    }
    if (observer_ != nullptr && !observer_->keep_going(world_)) {
      return stop(config::Verdict::kInconclusive, "interrupted");
    }
    return true;
  }

  bool stop(config::Verdict verdict, std::string why) {
    result_.verdict = verdict;
    result_.why = std::move(why);
    return false;
  }

  bool give_up_stuck() {
    result_.waits = edges_of(world_);
    Violation stuck =
        make_stuck_violation(result_.waits, *settings_.room->setup, {world_.events(), world_.now(), listener_.step_});
    listener_.violations_.add(std::move(stuck));
    return false;
  }

  void conclude() {
    const bool finished = world_.ended().has_value();
    listener_.judges_.at_end(finished, listener_.violations_);
    if (finished && world_.ended()->end == port::RunEnd::kCompleted) report_leaks();
    result_.verdict = verdict_with(result_.verdict, listener_.violations_);
    if (finished && result_.verdict == config::Verdict::kHeld && world_.ended()->end != port::RunEnd::kCompleted) {
      result_.verdict = config::Verdict::kLiveness;
      result_.why = "the training loop ended early: " + std::string(areal::to_text(world_.ended()->end));
    }
    result_.order_kept = !keeper_ || keeper_->kept();
    if (!failed_check_.empty()) {
      result_.verdict = config::Verdict::kSafety;
      result_.why = "a check of the code itself failed: " + failed_check_;
    }
    result_.digest = listener_.digest_.digest();
    result_.events = world_.events();
    result_.ended_at = world_.now();
    result_.published = listener_.published_;
    result_.end = world_.ended();
    result_.violations = listener_.violations_;
    result_.refusals = listener_.refusals_;
    result_.faults = world_.faults().counts();
    result_.measures = listener_.judges_.measures();
    result_.blind = listener_.judges_.blind();
    result_.misfit = world_.decisions().misfit();
  }

  void report_leaks() {
    for (const std::string& leak : world_.leaks()) {
      Violation violation;
      violation.invariant = InvariantId::kInv11;
      violation.seq = world_.events();
      violation.at = world_.now();
      violation.message = leak;
      listener_.violations_.add(std::move(violation));
    }
  }

  const RunSettings& settings_;
  World world_;
  std::optional<OrderKeeper> keeper_;
  RunObserver* observer_;
  Listener listener_;
  RunResult result_;
  bool healed_ = false;
  std::string failed_check_;
  std::uint64_t next_audit_ = kAuditEvery;
};

}  // namespace

bool is_named(const config::ExpectSettings& expect, const Violation& violation, const JudgeSetup& setup) {
  if (!expect.invariant.empty() && find_invariant(expect.invariant) != violation.invariant) return false;
  if (!expect.node.empty() && !fits_pattern(expect.node, setup.name_of(violation.node))) return false;
  return expect.version < 0 || violation.version == static_cast<Version>(expect.version);
}

Result<RunResult> run_once(const RunSettings& settings, RunObserver* observer) {
  const CheckGuard guard;
  auto world = World::make(settings.room, settings.seed, settings.profile, settings.defect_rules);
  if (!world) return world.error();
  std::optional<OrderKeeper> keeper;
  if (!settings.order.empty()) {
    auto made = OrderKeeper::make(*settings.room->scenario.interleave, settings.order, *settings.room);
    if (!made) return made.error();
    keeper = std::move(*made);
  }
  return Run(settings, std::move(*world), std::move(keeper), observer).finish();
}

int exit_code(config::Verdict verdict) { return static_cast<int>(verdict); }

config::Verdict verdict_with(config::Verdict verdict, const Violations& violations) {
  for (const Violation& violation : violations.all()) {
    const bool safety = violation.level == InvariantClass::kSafety;
    if (safety) verdict = config::Verdict::kSafety;
    if (!safety && verdict == config::Verdict::kHeld) verdict = config::Verdict::kLiveness;
  }
  return verdict;
}

std::string unmet_expectation(const config::ExpectSettings& expect, const RunResult& result, const JudgeSetup& setup) {
  const auto violations = result.violations.all();
  const bool wants_end = expect.end.has_value() && *expect.end != port::RunEnd::kCompleted;
  const bool ended_as_wanted = expect.end.has_value() && result.end.has_value() && result.end->end == *expect.end;
  // An expected early end is no liveness failure.
  const bool excused = wants_end && ended_as_wanted && violations.empty();
  const config::Verdict verdict = excused ? config::Verdict::kHeld : result.verdict;
  if (verdict != expect.verdict) {
    return "expected " + std::string(areal::to_text(expect.verdict)) + ", was " + std::string(areal::to_text(verdict));
  }
  if (expect.end.has_value() && !ended_as_wanted) {
    return "the run should have ended " + std::string(areal::to_text(*expect.end));
  }
  const bool names_violation = !expect.invariant.empty() || !expect.node.empty() || expect.version >= 0;
  if (names_violation &&
      std::ranges::none_of(violations, [&](const Violation& one) { return is_named(expect, one, setup); })) {
    return "no violation of " + expect.invariant + " as named" +
           (violations.empty() ? ""
                               : "; first was " + std::string(info_of(violations.front().invariant).name) + ": " +
                                     violations.front().message);
  }
  if (!expect.refused.empty() && std::ranges::count(result.refusals, expect.refused) == 0) {
    return "nothing was refused as " + expect.refused;
  }
  if (result.published < expect.published) {
    return "published " + std::to_string(result.published) + " versions, expected " + std::to_string(expect.published);
  }
  return {};
}

}  // namespace areal::sim
