// Pauses generation at every engine, or at none, and continues it.
//
// The training loop tells PauseAll and ContinueAll; each is answered once, with AllPaused or AllContinued. A pause that
// an engine refuses or does not answer in time is undone everywhere it may have come into force before it is answered.
// A gate that began again does not know who is paused, so it first continues everybody.
// One value of the controller's loop; not thread-safe.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/proto/caller.h"
#include "engine/proto/cluster.h"
#include "engine/proto/input.h"
#include "engine/proto/messages.h"
#include "engine/proto/waits.h"

namespace areal::proto {

struct PauseGateOptions {
  PauseMode mode = PauseMode::kAbortResubmit;
  Duration pause_timeout{60'000'000'000};  // For all engines to answer a pause.
  Duration grace{0};                       // Between the last answer and AllPaused.
  CallerOptions calls;                     // An engine that never answers a continue is given up after the last try.
};

struct PauseCount {
  std::uint32_t paused = 0;
  std::uint32_t refused = 0;
  std::uint32_t silent = 0;
  std::uint32_t total = 0;
};
// Whether a fan-out that is over counts as paused. The product's answer is that of all_paused().
using PauseVerdict = bool (*)(const PauseCount& count);
constexpr bool all_paused(const PauseCount& count) { return count.paused == count.total; }

enum class GatePhase : std::uint8_t { kRunning, kPausing, kGrace, kPaused, kUndoing, kContinuing };
constexpr std::array<std::string_view, 6> enum_names(GatePhase /*tag*/) {
  return {"running", "pausing", "grace", "paused", "undoing", "continuing"};
}

enum class EngineAnswer : std::uint8_t { kNone, kAsked, kYes, kNo, kSilent };
constexpr std::array<std::string_view, 5> enum_names(EngineAnswer /*tag*/) {
  return {"none", "asked", "yes", "no", "silent"};
}

class PauseGate {
 public:
  static constexpr std::string_view kName = "pause_gate";

  PauseGate(const PauseGateOptions& options, ClusterMap cluster, PauseVerdict verdict = all_paused);

  void step(const Input& input, Outbox& out);
  void list_waits(WaitList& waits) const;

  [[nodiscard]] GatePhase phase() const { return phase_; }

  AREAL_FIELDS(phase_, answers_, failure_, owes_paused_, owes_continued_, pause_next_, calls_)

 private:
  void on_pause(Outbox& out);
  void on_continue(Outbox& out);
  void on_answer(const PendingRequest& request, EngineAnswer answer, Outbox& out);
  void on_timer(const port::TimerFired& fired, Outbox& out);

  void begin_pause(Outbox& out);
  void decide(Outbox& out);
  void begin_continue(GatePhase phase, Outbox& out);
  void end_continue(Outbox& out);
  void say_paused(Outcome outcome, Outbox& out);
  [[nodiscard]] std::uint32_t count(EngineAnswer answer) const;

  // Set at construction; not state.
  PauseGateOptions options_;
  ClusterMap cluster_;
  PauseVerdict verdict_;

  GatePhase phase_ = GatePhase::kRunning;
  std::vector<EngineAnswer> answers_;  // By engine, of the present fan-out.
  Outcome failure_ = Outcome::kOk;     // Why a pause is undone.
  bool owes_paused_ = false;           // The loop waits for AllPaused.
  bool owes_continued_ = false;        // The loop waits for AllContinued.
  bool pause_next_ = false;            // A pause came while continuing.
  Caller calls_;
};

}  // namespace areal::proto
