// Builds small traces by hand and gives them to all judges at once.
//
// The cluster: two engines of two ranks (nodes 1 to 4), two trainers (5, 6), gateway 7, controller 8, router 9, store
// 10, guard 11. A clean trace must leave every judge silent; a planted mistake must wake the one that it belongs to.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/check/judge.h"

namespace areal::sim {

inline constexpr NodeId kGateway{7}, kController{8}, kRouter{9}, kStore{10}, kGuard{11};
inline constexpr NodeId kInfer[4] = {{1}, {2}, {3}, {4}};
inline constexpr NodeId kTrain[2] = {{5}, {6}};

inline JudgeSetup make_setup() {
  JudgeSetup setup;
  const auto add = [&](const std::string& name, port::Role role) -> JudgeNode& {
    JudgeNode& node = setup.nodes.emplace_back();
    node.id = NodeId{setup.nodes.size()};
    node.name = name;
    node.role = role;
    node.host = HostId{1};
    return node;
  };
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    JudgeNode& node = add("infer-" + std::to_string(rank), port::Role::kEngine);
    node.infer_rank = rank;
    node.engine = EngineId{rank / 2};
  }
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    add("train-" + std::to_string(rank), port::Role::kTrainer).train_rank = rank;
  add("gateway", port::Role::kGateway);
  add("controller", port::Role::kController);
  add("router", port::Role::kRouter);
  add("store", port::Role::kStore);
  add("guard", port::Role::kGuard);
  return setup;
}

class Trace {
 public:
  explicit Trace(JudgeSetup setup = make_setup())
      : incarnations_(setup.nodes.size() + 1, 1),
        judges_(make_judges(std::make_shared<JudgeSetup>(std::move(setup)))) {}

  template <RecordType T>
  std::uint64_t note(NodeId node, const T& body, std::uint64_t cause = 0) {
    return say_event(node, port::TraceWhat::kEffect, to_record(port::Note{}), to_record(body), cause);
  }
  template <RecordType T>
  std::uint64_t effect(NodeId node, const T& record, std::uint64_t cause = 0) {
    return say_event(node, port::TraceWhat::kEffect, to_record(record), {}, cause);
  }
  template <RecordType T>
  std::uint64_t input(NodeId node, const T& record, std::uint64_t cause = 0) {
    return say_event(node, port::TraceWhat::kInput, to_record(record), {}, cause);
  }
  template <RecordType T>
  std::uint64_t dropped_note(NodeId node, const T& body) {
    return say_event(node, port::TraceWhat::kDropped, to_record(port::Note{}), to_record(body), 0);
  }
  // The node's process begins again.
  void restart(NodeId node) {
    ++incarnations_[node.value];
    input(node, port::Started{incarnations_[node.value], 0, 1});
  }
  void end(bool finished = true) { judges_.at_end(finished, out_); }

  [[nodiscard]] Judges& judges() { return judges_; }
  [[nodiscard]] const Violations& violations() const { return out_; }
  // Names of what was found, in order, each once.
  [[nodiscard]] std::string names() const {
    std::string text;
    for (const Violation& found : out_.all()) {
      const std::string name(info_of(found.invariant).name);
      if ((" " + text + " ").find(" " + name + " ") == std::string::npos) text += (text.empty() ? "" : " ") + name;
    }
    return text;
  }
  [[nodiscard]] bool found(InvariantId invariant, NodeId node) const {
    for (const Violation& each : out_.all()) {
      if (each.invariant == invariant && each.node == node) return true;
    }
    return false;
  }
  [[nodiscard]] bool found(InvariantId invariant, NodeId node, Version version) const {
    for (const Violation& each : out_.all()) {
      if (each.invariant == invariant && each.node == node && each.version == version) return true;
    }
    return false;
  }

 private:
  std::uint64_t say_event(NodeId node, port::TraceWhat what, const Record& record, const Record& body,
                          std::uint64_t cause) {
    port::TraceEvent event;
    event.seq = ++seq_;
    event.cause = cause;
    event.at = Instant{static_cast<std::int64_t>(seq_) * 1000};
    event.node = node;
    event.incarnation = incarnations_[node.value];
    event.what = what;
    event.record = record;
    event.body = body;
    judges_.on_event(event, out_);
    return seq_;
  }

  std::uint64_t seq_ = 0;
  std::vector<Incarnation> incarnations_;
  Judges judges_;
  Violations out_;
};

// ---- A clean cluster at work ----

// What rank `place` of any engine holds at `version`.
inline Digest128 weights_of(Version version, std::uint32_t place) { return {version + 1, 1000 + 10 * version + place}; }
inline Digest128 engine_weights(Version version) {
  DigestSum sum;
  for (std::uint32_t place = 0; place < 2; ++place) sum.add(weights_of(version, place));
  return sum.total;
}

// All processes start, engines load version 0, and the pair of `epoch` is connected.
inline void start_cluster(Trace& trace) {
  for (std::uint64_t node = 1; node <= 11; ++node) trace.input(NodeId{node}, port::Started{1, 0, 1});
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    port::ComputeDone loaded;
    loaded.what = port::ComputeKind::kLoadModel;
    loaded.digest = weights_of(0, rank % 2);
    trace.input(kInfer[rank], loaded);
    trace.note(kInfer[rank], port::WeightsState{EngineId{rank / 2}, rank % 2, port::ServeState::kLoading, 0,
                                                weights_of(0, rank % 2)});
  }
  trace.note(kGateway, port::PairChanged{1, port::PairState::kReserved, 0});
  trace.note(kGateway, port::PairChanged{1, port::PairState::kConnected, 0});
  for (std::uint64_t engine = 0; engine < 2; ++engine) {
    trace.note(kRouter, port::EligibleChanged{EngineId{engine}, true, 0});
  }
}

// The parts of one update of epoch 1, attempt 1, each of which a test may replace.
struct UpdateSteps {
  Version version = 1;
  Attempt attempt = 1;
  bool pauses = true;
  bool fences = true;
  bool publishes = true;
  NodeId skips{};           // A receiver that applies nothing.
  NodeId differs{};         // A receiver whose bytes are other ones, ...
  Digest128 other{77, 77};  // ... namely these.
  NodeId writes_less{};     // A receiver that writes 9 of 10 tensors.
};

inline void apply_at(Trace& trace, std::uint32_t rank, const UpdateSteps& steps) {
  const NodeId node = kInfer[rank];
  const EngineId engine{rank / 2};
  trace.note(node, port::ApplyStarted{1, steps.version, steps.attempt, rank, engine});
  port::ComputeDone done;
  done.what = port::ComputeKind::kApply;
  trace.input(node, done);
  done.what = port::ComputeKind::kFence;
  if (steps.fences) trace.input(node, done);
  const Digest128 digest = steps.differs == node ? steps.other : weights_of(steps.version, rank % 2);
  const std::uint64_t written = steps.writes_less == node ? 9 : 10;
  trace.note(node, port::Applied{1, steps.version, steps.attempt, rank, engine, written, 10, digest});
}

inline void run_update(Trace& trace, const UpdateSteps& steps = {}) {
  const auto pause = [&](bool on) {
    if (!steps.pauses) return;
    for (std::uint32_t engine = 0; engine < 2; ++engine) {
      trace.note(kInfer[2 * engine], port::PauseChanged{EngineId{engine}, on, port::PauseMode::kAbortResubmit, 0});
    }
  };
  pause(true);
  trace.note(kGateway, port::PairChanged{1, port::PairState::kUpdating, steps.version - 1});
  trace.note(kGateway, port::UpdateStarted{1, steps.version, steps.attempt, port::UpdateMode::kFull, {}});
  for (std::uint32_t rank = 0; rank < 6; ++rank) {
    trace.note(NodeId{rank + 1}, port::CollectiveEntered{1, steps.version, steps.attempt, rank});
  }
  // Each trainer sends one rank's share to both engines.
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    DigestSum sent;
    sent.add(weights_of(steps.version, rank));
    sent.add(weights_of(steps.version, rank));
    trace.note(kTrain[rank], port::Exported{1, steps.version, steps.attempt, 4 + rank, 100, sent.total});
  }
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    if (steps.skips != kInfer[rank]) apply_at(trace, rank, steps);
  }
  if (!steps.publishes) return;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    if (steps.skips == kInfer[rank]) continue;
    trace.note(kInfer[rank], port::WeightsState{EngineId{rank / 2}, rank % 2, port::ServeState::kServing, steps.version,
                                                weights_of(steps.version, rank % 2)});
  }
  trace.note(kGateway, port::UpdateEnded{1, steps.version, steps.attempt, port::Outcome::kOk, {}});
  trace.note(kGateway, port::VersionPublished{1, steps.version, steps.attempt, port::UpdateMode::kFull, {}, 400});
  trace.note(kGateway, port::PairChanged{1, port::PairState::kConnected, steps.version});
  pause(false);
}

}  // namespace areal::sim
