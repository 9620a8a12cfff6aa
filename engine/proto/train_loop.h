// The training loop: collect a batch, train on it, move the new weights, publish them, clear the batch, go on.
//
// The order of one step is that of spec/algorithms.md 13.2. A version is published (set_version in the order actor,
// rollout, router) only after the gateway said that its update ended well; what else ends an update is asked for anew a
// bounded number of times, and then the run ends with generation left paused, so that nothing ever bears a version that
// the engines do not hold. Every fan-out is all or nothing: one that cannot be completed ends the run.
//
// When the gateway says that engines lost the published version while a batch is collected, the loop repairs them: the
// same pause, update and announcement for the version that is published already, which the trainers still hold, and
// then the same batch again. In the phases of an update it need not: the next update is full. What is said between an
// update and the next collecting is remembered.
#pragma once
#include <cstdint>
#include <string_view>

#include "engine/proto/callee.h"
#include "engine/proto/caller.h"
#include "engine/proto/cluster.h"
#include "engine/proto/input.h"
#include "engine/proto/messages.h"
#include "engine/proto/waits.h"

namespace areal::proto {

// What is done when an update request ended. kRetry is a new request, or the end of the run when all were used.
enum class UpdateVerdict : std::uint8_t { kPublish, kRetry, kStop };
using AfterUpdate = UpdateVerdict (*)(Outcome outcome);
constexpr UpdateVerdict publish_only_when_ok(Outcome outcome) {
  return outcome == Outcome::kOk ? UpdateVerdict::kPublish : UpdateVerdict::kRetry;
}

struct TrainLoopOptions {
  std::uint32_t updates = 3;
  bool pause_around_update = true;
  std::uint32_t update_retries = 0;           // New update requests of one step after the first.
  std::uint32_t connect_tries = 30;           // Connect requests in all.
  std::uint32_t pause_tries = 5;              // Times that one step asks for the pause; also for continuing.
  std::uint32_t clear_tries = 2;              // Times that one step asks for its batch to be cleared.
  Duration retry_after{10'000'000'000};       // Between two tries of any of them.
  Duration phase_timeout{3'600'000'000'000};  // For an answer from inside the controller; the run ends after it.
  // Must outlast what the gateway allows one update with all its attempts: 240 tries of 10 s are 40 minutes.
  CallerOptions calls{.tries = 240};
};

enum class LoopState : std::uint8_t {
  kIdle,
  kConnecting,
  kConnectBackoff,
  kAnnouncing,
  kCollecting,
  kTraining,
  kPausing,
  kPauseBackoff,
  kUpdating,
  kUpdateBackoff,
  kContinuing,
  kContinueBackoff,
  kSettingTrainers,
  kSettingEngines,
  kSettingRouter,
  kClearing,
  kDisconnecting,
  kEnded
};
constexpr std::array<std::string_view, 18> enum_names(LoopState /*tag*/) {
  return {"idle",
          "connecting",
          "connect_backoff",
          "announcing",
          "collecting",
          "training",
          "pausing",
          "pause_backoff",
          "updating",
          "update_backoff",
          "continuing",
          "continue_backoff",
          "setting_trainers",
          "setting_engines",
          "setting_router",
          "clearing",
          "disconnecting",
          "ended"};
}

class TrainLoop {
 public:
  static constexpr std::string_view kName = "train_loop";

  TrainLoop(const TrainLoopOptions& options, ClusterMap cluster, AfterUpdate after_update = publish_only_when_ok);

  void step(const Input& input, Outbox& out);
  void list_waits(WaitList& waits) const;

  [[nodiscard]] LoopState state() const { return state_; }
  [[nodiscard]] Version version() const { return version_; }

  AREAL_FIELDS(state_, incarnation_, step_, version_, tries_, repairing_, lost_, calls_, callee_)

 private:
  void on_request(const port::MessageIn& message, Outbox& out);
  void on_reply(const Record& body, Outbox& out);
  void on_tell(const Record& body, Outbox& out);
  void on_timer(const port::TimerFired& fired, Outbox& out);
  void on_gave_up(Outbox& out);

  // One for each answer that moves the loop.
  void on_connect(Outcome outcome, Outbox& out);
  void on_batch(const BatchReady& ready, Outbox& out);
  void on_paused(Outcome outcome, Outbox& out);
  void on_updated(Outcome outcome, Outbox& out);
  void on_continued(Outcome outcome, Outbox& out);
  void on_fanned_out(Outbox& out);
  void on_cleared(Outcome outcome, Outbox& out);

  void connect(Outbox& out);
  void begin_step(Outbox& out);
  void collect(Outbox& out);
  void repair(Outbox& out);
  void pause(Outbox& out);
  void update(Outbox& out);
  void leave_update(Outbox& out);
  void set_versions(Outbox& out);
  void clear(Outbox& out);

  void enter(port::LoopPhase phase, Outbox& out);
  // Waits for another protocol of the controller.
  void await_tell(LoopState state, Outbox& out);
  void back_off(LoopState state, Outbox& out);
  void end_run(port::RunEnd end, Outbox& out);
  [[nodiscard]] TrainBatchId batch() const;
  [[nodiscard]] Version next_version() const { return step_ + 1; }
  // What the present update moves.
  [[nodiscard]] Version target() const { return repairing_ ? version_ : next_version(); }
  [[nodiscard]] std::uint32_t shards_of(std::uint32_t train_rank, std::uint32_t shards) const;

  // Set at construction; not state.
  TrainLoopOptions options_;
  ClusterMap cluster_;
  AfterUpdate after_update_;

  LoopState state_ = LoopState::kIdle;
  Incarnation incarnation_ = 0;
  std::uint64_t step_ = 0;
  Version version_ = 0;      // Published.
  std::uint32_t tries_ = 0;  // Of what the state asks for.
  bool repairing_ = false;
  Version lost_ = 0;  // The version that engines were last said to have lost; 0: none since the last update.
  Caller calls_;
  Callee callee_;
};

}  // namespace areal::proto
