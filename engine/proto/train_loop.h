// The training loop: collect a batch, train on it, move the new weights, publish them, clear the batch, go on.
//
// The order of one step is that of spec/algorithms.md 13.2. A version is published (set_version in the order actor,
// rollout, router) only after the gateway said that its update ended well; what else ends an update is asked for anew a
// bounded number of times, and then the run ends with generation left paused, so that nothing ever bears a version that
// the engines do not hold. Every fan-out is all or nothing: one that cannot be completed ends the run.
//
// The training ranks meet under a training epoch before the first step. A checkpoint of what a step made is written
// before its update, ranks first and the info last. When a rank dies the loop recovers from any phase: it waits until
// all live, lets them meet anew with the weights of the last whole checkpoint, and goes on from there. If that is what
// was about to be published, it is published; if it is what is published, the present step is made again, of the same
// batch; if it is older than what engines may hold, all rollout work is void and the old version is moved to the
// engines again.
//
// When the gateway says that engines lost the published version while a batch is collected, the loop repairs them: the
// same pause, update and announcement for the version that is published already, which the trainers still hold, and
// then the same batch again. In the phases of an update it need not: the next update is full. What is said between an
// update and the next collecting is remembered.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/proto/callee.h"
#include "engine/proto/caller.h"
#include "engine/proto/checkpoint_info.h"
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
  std::uint32_t update_retries = 0;    // New update requests of one step after the first.
  std::uint32_t connect_tries = 30;    // Connect requests in all.
  std::uint32_t pause_tries = 5;       // Times that one step asks for the pause; also for continuing.
  std::uint32_t clear_tries = 2;       // Times that one step asks for its batch to be cleared.
  std::uint32_t checkpoint_every = 1;  // Training steps between two checkpoints; 0: none is written.
  std::uint32_t save_tries = 3;        // Times that one checkpoint is asked for.
  std::uint32_t max_recoveries = 16;   // Of the run.
  std::uint32_t lost_tries = 6;        // New requests for one update whose news of a lost rank is still on its way.
  std::int64_t batch_groups = 8;       // Sample groups of one training step.
  Duration recover_timeout{1'800'000'000'000};  // From a loss until all ranks have met again.
  Duration retry_after{10'000'000'000};         // Between two tries of any of them.
  Duration phase_timeout{3'600'000'000'000};    // For an answer from inside the controller; the run ends after it.
  // Must outlast what the gateway allows one update with all its attempts: 240 tries of 10 s are 40 minutes.
  CallerOptions calls{.tries = 240};
};

enum class LoopState : std::uint8_t {
  kIdle,
  kConnecting,
  kConnectBackoff,
  kAwaitingRanks,
  kReservingPort,
  kPortBackoff,
  kReadingInfo,
  kJoining,
  kReturningPorts,
  kAnnouncing,
  kCollecting,
  kTraining,
  kSaving,
  kSaveBackoff,
  kWritingInfo,
  kResettingPool,
  kVoidingBatch,
  kVoidingShards,
  kVoidBackoff,
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
  kLeavingWorld,
  kDisconnecting,
  kEnded
};
constexpr std::array<std::string_view, 32> enum_names(LoopState /*tag*/) {
  return {"idle",
          "connecting",
          "connect_backoff",
          "awaiting_ranks",
          "reserving_port",
          "port_backoff",
          "reading_info",
          "joining",
          "returning_ports",
          "announcing",
          "collecting",
          "training",
          "saving",
          "save_backoff",
          "writing_info",
          "resetting_pool",
          "voiding_batch",
          "voiding_shards",
          "void_backoff",
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
          "leaving_world",
          "disconnecting",
          "ended"};
}

// A training rank as the loop knows it.
struct LoopRank {
  Incarnation incarnation = 0;  // The latest known; 0: none was heard of.
  bool alive = true;
  AREAL_FIELDS(incarnation, alive)
};

// A port that the host of the training world's master keeps for a training epoch.
struct WorldPort {
  Epoch training_epoch = 0;
  std::uint16_t port = 0;
  AREAL_FIELDS(training_epoch, port)
};

class TrainLoop {
 public:
  static constexpr std::string_view kName = "train_loop";

  TrainLoop(const TrainLoopOptions& options, ClusterMap cluster, AfterUpdate after_update = publish_only_when_ok);

  void step(const Input& input, Outbox& out);
  void list_waits(WaitList& waits) const;

  [[nodiscard]] LoopState state() const { return state_; }
  [[nodiscard]] Version version() const { return version_; }
  [[nodiscard]] Epoch training_epoch() const { return training_epoch_; }

  AREAL_FIELDS(state_, incarnation_, step_, version_, tries_, lost_tries_, repairing_, lost_, offered_, announced_,
               gate_used_, going_on_, batch_, training_epoch_, recoveries_, clock_runs_, ranks_, ports_, sum_, info_,
               void_, calls_, callee_)

 private:
  // Inputs (train_loop.cpp).
  void on_request(const port::MessageIn& message, Outbox& out);
  void on_reply(const port::MessageIn& message, Outbox& out);
  void on_tell(const Record& body, Outbox& out);
  void on_timer(const port::TimerFired& fired, Outbox& out);
  void on_backoff(Outbox& out);
  void on_gave_up(Outbox& out);
  void connect(Outbox& out);
  void on_connect(Outcome outcome, Outbox& out);
  void announce(Outbox& out);
  void finish(Outbox& out);
  void disconnect(Outbox& out);
  void check_invariants() const;

  // One step (train_loop_step.cpp): one for each answer that moves the loop, and what follows.
  void on_batch(const BatchReady& ready, Outbox& out);
  void on_step_done(const Record& body, Outbox& out);
  void on_paused(Outcome outcome, Outbox& out);
  void on_updated(Outcome outcome, Outbox& out);
  void on_continued(Outcome outcome, Outbox& out);
  void on_fanned_out(Outbox& out);
  void on_cleared(const BatchCleared& cleared, Outbox& out);
  void begin_step(Outbox& out);
  void collect(Outbox& out);
  void repair(Outbox& out);
  void pause(Outbox& out);
  void update(Outbox& out);
  void leave_update(Outbox& out);
  void continue_generation(Outbox& out);
  void set_versions(Outbox& out);
  void clear(Outbox& out);

  // Training world and checkpoints (train_loop_world.cpp).
  void open_world(Outbox& out);
  void reserve_port(Outbox& out);
  void on_port(Outcome outcome, std::uint16_t port, Outbox& out);
  void read_info(Outbox& out);
  void join_ranks(Outbox& out);
  void on_rank_joined(const port::MessageIn& message, Outbox& out);
  void on_world_open(Outbox& out);
  void return_ports(Epoch before, Outbox& out);
  void on_ports_returned(Outbox& out);
  void save(Outbox& out);
  void on_saved(const Record& body, Outbox& out);
  void on_stored(const port::StoreDone& done, Outbox& out);

  // Recovery (train_loop_recovery.cpp).
  void on_rank_exited(const WorkerExited& exited, Outbox& out);
  void on_rank_started(const WorkerStarted& started, Outbox& out);
  void lose_rank(Outbox& out);
  void recover(Outbox& out);
  void go_on_from(Version version, Outbox& out);
  void go_on(Outbox& out);
  void roll_back(Version version, Outbox& out);
  void on_pool_reset(Outbox& out);
  void on_voided(Outcome outcome, Outbox& out);
  [[nodiscard]] bool all_alive() const;
  [[nodiscard]] bool is_guard(NodeId node) const;

  void enter(port::LoopPhase phase, Outbox& out);
  // Waits for another protocol of the controller, or its store.
  void await_tell(LoopState state, Outbox& out);
  [[nodiscard]] bool awaits_tell() const;
  void back_off(LoopState state, Outbox& out);
  void end_run(port::RunEnd end, Outbox& out);
  // How the run ends if the training world cannot be opened.
  [[nodiscard]] port::RunEnd world_failed() const;
  // Names a batch that was never named before, also not by a controller before this one; 0: shards that no batch took.
  [[nodiscard]] TrainBatchId batch_name(std::uint64_t number) const;
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
  Version version_ = 0;           // Published.
  std::uint32_t tries_ = 0;       // Of what the state asks for.
  std::uint32_t lost_tries_ = 0;  // Of one update: those that failed because a rank was lost.
  bool repairing_ = false;        // The published version is moved again.
  Version lost_ = 0;          // The version that engines were last said to have lost; 0: none since the last update.
  Version offered_ = 0;       // The highest version that engines may hold, or others may know, of any history.
  bool announced_ = false;    // The router was told of version 0.
  bool gate_used_ = false;    // Generation may be paused.
  bool going_on_ = false;     // Generation is continued because of a recovery, not of an update.
  TrainBatchId batch_;        // Of the present step.
  Epoch training_epoch_ = 0;  // The newest that ranks were asked to join; 0: none.
  std::uint32_t recoveries_ = 0;
  bool clock_runs_ = false;  // recover_timeout is counted.
  std::vector<LoopRank> ranks_;
  std::vector<WorldPort> ports_;  // Reserved and not given back; the newest last. At most max_recoveries + 1.
  Digest128 sum_;                 // Over the answers of the present fan-out.
  TrainBatchId void_;             // Names shards that no batch took while a roll-back drops them.
  CheckpointInfo info_;
  Caller calls_;
  Callee callee_;
};

}  // namespace areal::proto
