// The rollout side as a whole in a hostile little world: real protocols, and a network that loses, repeats and
// reorders.
//
// There is no time: whatever is pending may come next, timers included. Device and loop are models: the device knows
// which weights it really holds, so that labels can be held against the truth. Everything is drawn from one seed.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/base/rng.h"
#include "engine/proto/engine_server.h"
#include "engine/proto/pause_gate.h"
#include "engine/proto/rollout_pool.h"
#include "engine/proto/router.h"
#include "tests/unit/rollout_cluster.h"

namespace areal::test {

struct RolloutWorldOptions {
  std::uint32_t engines = 2;
  std::uint32_t samples = 2;
  std::uint32_t updates = 4;
  proto::StalenessLimits limits{3, 2, 1};
  proto::PauseMode mode = proto::PauseMode::kAbortResubmit;
  bool pauses_engines = true;
  std::uint64_t loss = 10;  // Chances in a hundred.
  std::uint64_t repeats = 10;
  std::uint64_t restarts = 2;  // Chances in a thousand, each step.
  proto::LockPolicy lock = proto::claim_at_once;
  proto::PauseVerdict verdict = proto::all_paused;
};

class RolloutWorld {
 public:
  static constexpr std::uint64_t kMaxTokens = 40;

  RolloutWorld(const RolloutWorldOptions& options, std::uint64_t seed);

  // Runs until all updates were made and every group ended; false if that took more than `steps`.
  bool run(std::uint64_t steps);

  // The first rule that was broken; empty if none was.
  std::string broken;
  std::uint64_t groups_admitted = 0;
  std::uint64_t groups_finished = 0;
  std::uint64_t samples_ended = 0;
  std::uint64_t segments_stored = 0;
  std::uint64_t restarted = 0;

 private:
  struct Where {
    NodeId node;
    SlotId slot;
    auto operator<=>(const Where&) const = default;
  };
  struct Flight {
    Where to;
    port::MessageIn message;
    bool lasts = false;  // Cannot be lost: a word of the world itself.
  };
  struct DeviceOp {
    OpId op;
    std::uint64_t left = 0;
    std::uint64_t made = 0;
  };
  enum class Write : std::uint8_t { kNone, kAsked, kDone };
  struct Engine {
    explicit Engine(proto::EngineServer fresh, Incarnation count = 1) : server(std::move(fresh)), incarnation(count) {}

    proto::EngineServer server;
    Incarnation incarnation;
    Version holds = 0;  // The truth.
    bool frozen = false;
    Write write = Write::kNone;
    std::vector<DeviceOp> ops;
    std::vector<port::ComputeDone> done;  // Comes in this order.
    std::vector<port::TellIn> tells;      // Likewise.
  };
  enum class Loop : std::uint8_t { kCollect, kPausing, kWriting, kContinuing, kPublishing, kEnded };

  template <class P>
  void feed(P& protocol, Where where, const proto::Input& input);
  void carry_out(Where from, const proto::Effect& effect);
  void on_send(Where from, const port::Send& send);
  void on_tell(Where from, const port::Tell& tell);
  void on_start(Where from, const port::StartCompute& start);
  void on_note(const Record& body);
  void on_stored(const port::SegmentStored& stored);
  void deliver(const Flight& flight);
  void give(Where where, const proto::Input& input);

  void some_message();
  void some_timer();
  bool device_step();
  void finish_op(Engine& engine, std::size_t index, port::Outcome outcome, bool more);
  void loop_step();
  bool write_all();
  // The gateway's word on what the engines hold now.
  void prove_members(Version version);
  void restart(std::size_t engine);
  [[nodiscard]] bool quiet() const;
  [[nodiscard]] Engine* engine_at(NodeId node);
  void breaks(const std::string& rule) {
    if (broken.empty()) broken = rule;
  }
  proto::EngineServer make_server(std::size_t engine) const;

  RolloutWorldOptions options_;
  proto::ClusterMap cluster_;
  Rng rng_;
  proto::RolloutPool pool_;
  proto::PauseGate gate_;
  proto::Router router_;
  std::vector<Engine> engines_;
  std::vector<Flight> flights_;
  std::vector<std::pair<Where, TimerId>> timers_;
  std::vector<std::pair<Where, port::TellIn>> controller_tells_;  // In order.
  std::vector<port::ComputeDone> rewards_;

  bool calm_ = false;  // No loss, repeat, restart or rejection any more.
  bool pool_paused_ = false;
  Loop loop_ = Loop::kCollect;
  Version published_ = 0;
  std::optional<Version> restarted_in_;  // The published version at the last restart.
  std::uint64_t last_request_ = 0;
  bool batch_ready_ = false;
  std::optional<proto::Outcome> paused_;
  std::optional<proto::Outcome> continued_;

  using Made = std::tuple<std::uint64_t, std::uint64_t, Version, std::uint64_t, std::uint64_t>;
  std::map<Made, int> made_;                       // Decoded and not yet stored.
  std::map<std::uint64_t, std::uint64_t> tokens_;  // By sample.
  std::map<std::uint64_t, int> ends_;              // By sample.
  std::map<std::uint64_t, int> finished_;          // By group.
};

}  // namespace areal::test
