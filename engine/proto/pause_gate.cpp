#include "engine/proto/pause_gate.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace areal::proto {
namespace {

constexpr TimerId kPauseTimer{1};
constexpr TimerId kGraceTimer{2};

// Other words than the one that fits are no consent.
EngineAnswer answer_of(const Record& body) {
  EngineAnswer answer = EngineAnswer::kNo;
  dispatch_record<EnginePaused, EngineContinued>(body, [&](const auto& reply) {
    if (reply.outcome == Outcome::kOk) answer = EngineAnswer::kYes;
  });
  return answer;
}

}  // namespace

PauseGate::PauseGate(const PauseGateOptions& options, ClusterMap cluster, PauseVerdict verdict)
    : options_(options),
      cluster_(std::move(cluster)),
      verdict_(verdict),
      answers_(cluster_.engines, EngineAnswer::kNone),
      calls_(options.calls) {}

void PauseGate::step(const Input& input, Outbox& out) {
  if (const auto* started = std::get_if<port::Started>(&input)) {
    calls_.start(started->incarnation);
    if (started->incarnation > 1) begin_continue(GatePhase::kContinuing, out);
  } else if (const auto* tell = std::get_if<port::TellIn>(&input)) {
    if (tell->body.kind == PauseAll::kKind) return on_pause(out);
    if (tell->body.kind == ContinueAll::kKind) return on_continue(out);
    out.note(port::Refused{tell->body.kind, Refusal::kUnknown, cluster_.controller, tell->from_slot.value});
  } else if (const auto* message = std::get_if<port::MessageIn>(&input)) {
    if (const auto request = calls_.answered(*message, out)) on_answer(*request, answer_of(message->body), out);
  } else if (const auto* fired = std::get_if<port::TimerFired>(&input)) {
    on_timer(*fired, out);
  }
}

void PauseGate::on_pause(Outbox& out) {
  owes_paused_ = true;
  switch (phase_) {
    case GatePhase::kRunning:
      return begin_pause(out);
    case GatePhase::kPaused:
      return say_paused(Outcome::kOk, out);
    case GatePhase::kContinuing:
      pause_next_ = true;
      return;
    case GatePhase::kPausing:
    case GatePhase::kGrace:
    case GatePhase::kUndoing:
      return;  // The answer is on its way.
  }
}

void PauseGate::on_continue(Outbox& out) {
  owes_continued_ = true;
  pause_next_ = false;
  switch (phase_) {
    case GatePhase::kPausing:
    case GatePhase::kGrace:
      out.push(port::DisarmTimer{kPauseTimer});
      out.push(port::DisarmTimer{kGraceTimer});
      say_paused(Outcome::kAborted, out);
      return begin_continue(GatePhase::kContinuing, out);
    case GatePhase::kRunning:
    case GatePhase::kPaused:
      return begin_continue(GatePhase::kContinuing, out);
    case GatePhase::kContinuing:
      if (owes_paused_) say_paused(Outcome::kAborted, out);
      return;
    case GatePhase::kUndoing:
      return;  // Both answers are on their way.
  }
}

void PauseGate::on_answer(const PendingRequest& request, EngineAnswer answer, Outbox& out) {
  for (std::uint32_t engine = 0; engine < cluster_.engines; ++engine) {
    if (cluster_.server(EngineId{engine}) == request.to) answers_[engine] = answer;
  }
  if (count(EngineAnswer::kAsked) > 0) return;
  if (phase_ == GatePhase::kPausing)
    decide(out);
  else if (phase_ == GatePhase::kUndoing || phase_ == GatePhase::kContinuing)
    end_continue(out);
}

void PauseGate::on_timer(const port::TimerFired& fired, Outbox& out) {
  if (fired.timer == kPauseTimer) {
    if (phase_ == GatePhase::kPausing) decide(out);
  } else if (fired.timer == kGraceTimer) {
    if (phase_ != GatePhase::kGrace) return;
    phase_ = GatePhase::kPaused;
    say_paused(Outcome::kOk, out);
  } else if (const auto result = calls_.on_timer(fired, out); result.what == Caller::Fired::kGaveUp) {
    on_answer(result.request, EngineAnswer::kSilent, out);
  }
}

void PauseGate::begin_pause(Outbox& out) {
  phase_ = GatePhase::kPausing;
  for (std::uint32_t engine = 0; engine < cluster_.engines; ++engine) {
    answers_[engine] = EngineAnswer::kAsked;
    calls_.ask(cluster_.server(EngineId{engine}), kServerSlot, PauseEngine{options_.mode}, out);
  }
  out.push(port::ArmTimer{kPauseTimer, options_.pause_timeout});
  if (cluster_.engines == 0) decide(out);
}

// All have answered, or the time is over.
void PauseGate::decide(Outbox& out) {
  out.push(port::DisarmTimer{kPauseTimer});
  const std::uint32_t silent = count(EngineAnswer::kAsked) + count(EngineAnswer::kSilent);
  const PauseCount counted{count(EngineAnswer::kYes), count(EngineAnswer::kNo), silent, cluster_.engines};
  if (!verdict_(counted)) {
    failure_ = counted.refused > 0 ? Outcome::kRefused : Outcome::kTimedOut;
    return begin_continue(GatePhase::kUndoing, out);
  }
  calls_.forget_if([](const PendingRequest&) { return true; }, out);
  if (options_.grace > Duration{0}) {
    phase_ = GatePhase::kGrace;
    out.push(port::ArmTimer{kGraceTimer, options_.grace});
    return;
  }
  phase_ = GatePhase::kPaused;
  say_paused(Outcome::kOk, out);
}

// Undoing a pause leaves those alone that refused it.
void PauseGate::begin_continue(GatePhase phase, Outbox& out) {
  calls_.forget_if([](const PendingRequest&) { return true; }, out);
  phase_ = phase;
  for (std::uint32_t engine = 0; engine < cluster_.engines; ++engine) {
    if (phase == GatePhase::kUndoing && answers_[engine] == EngineAnswer::kNo) continue;
    answers_[engine] = EngineAnswer::kAsked;
    calls_.ask(cluster_.server(EngineId{engine}), kServerSlot, ContinueEngine{}, out);
  }
  if (count(EngineAnswer::kAsked) == 0) end_continue(out);
}

void PauseGate::end_continue(Outbox& out) {
  const bool undone = phase_ == GatePhase::kUndoing;
  const bool all = count(EngineAnswer::kYes) == cluster_.engines;
  phase_ = GatePhase::kRunning;
  if (undone) say_paused(failure_, out);
  if (owes_continued_) {
    owes_continued_ = false;
    // An undone pause left no engine paused that refused it.
    const bool ok = all || (undone && count(EngineAnswer::kSilent) == 0);
    out.tell(kTrainLoopSlot, AllContinued{ok ? Outcome::kOk : Outcome::kTimedOut});
  }
  if (!pause_next_) return;
  pause_next_ = false;
  begin_pause(out);
}

void PauseGate::say_paused(Outcome outcome, Outbox& out) {
  if (!owes_paused_) return;
  owes_paused_ = false;
  out.tell(kTrainLoopSlot, AllPaused{outcome});
}

std::uint32_t PauseGate::count(EngineAnswer answer) const {
  return static_cast<std::uint32_t>(std::ranges::count(answers_, answer));
}

void PauseGate::list_waits(WaitList& waits) const {
  for (const auto& entry : calls_.pending()) {
    const bool pauses = entry.value.body.kind == PauseEngine::kKind;
    waits.push_back({entry.value.to, pauses ? "engine to pause" : "engine to continue", entry.key.value});
  }
}

}  // namespace areal::proto
