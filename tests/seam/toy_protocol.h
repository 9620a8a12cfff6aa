// A two-phase key/value replicator: the smallest protocol that needs messages, timers, a group and processes.
//
// The leader starts its followers. For a SetValue it asks every follower to stage the value, again by timer until each
// replied; when all have, it meets them in a Gloo barrier and then asks them to commit, again by timer. A follower that
// dies before the barrier ended fails the round: the leader aborts the group, and the next round forms a new one.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/fields.h"
#include "engine/base/table.h"
#include "engine/port/notes.h"
#include "engine/proto/effect.h"
#include "engine/proto/input.h"
#include "engine/proto/waits.h"

namespace areal::seam {

inline constexpr std::size_t kMaxKeys = 64;
inline constexpr std::size_t kMaxClients = 8;
inline constexpr TimerId kRetryTimer{1};
inline constexpr Duration kRetryAfter = 100_ms;

// ---- Messages ----

struct SetValue {
  std::uint64_t key = 0;
  std::uint64_t value = 0;
  AREAL_RECORD(0x7001, "toy_set_value", key, value)
};
struct SetDone {
  std::uint64_t key = 0;
  port::Outcome outcome = port::Outcome::kOk;
  AREAL_RECORD(0x7002, "toy_set_done", key, outcome)
};
struct Stage {
  std::uint64_t round = 0;
  std::uint64_t key = 0;
  std::uint64_t value = 0;
  GroupId group{};
  std::uint32_t rank = 0;
  std::uint32_t world = 0;
  std::uint16_t port = 0;
  AREAL_RECORD(0x7003, "toy_stage", round, key, value, group, rank, world, port)
};
struct Staged {
  std::uint64_t round = 0;
  AREAL_RECORD(0x7004, "toy_staged", round)
};
struct Commit {
  std::uint64_t round = 0;
  AREAL_RECORD(0x7005, "toy_commit", round)
};
struct Committed {
  std::uint64_t round = 0;
  AREAL_RECORD(0x7006, "toy_committed", round)
};

inline void add_toy_kinds(KindTable& kinds) { kinds.add<SetValue, SetDone, Stage, Staged, Commit, Committed>(); }

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

template <RecordType T>
port::Send make_send(NodeId to, SlotId to_slot, port::MessageKind kind, RequestId request, const T& body) {
  return port::Send{to, to_slot, kind, request, to_record(body)};
}
template <RecordType T>
port::Send make_reply(const port::MessageIn& asked, const T& body) {
  return make_send(asked.from, asked.from_slot, port::MessageKind::kReply, asked.request, body);
}
inline port::Refused make_refused(const port::MessageIn& message, port::Refusal reason, std::uint64_t detail) {
  return port::Refused{message.body.kind, reason, message.from, detail};
}

// ---- Leader ----

enum class LeaderPhase : std::uint8_t { kStarting, kIdle, kStaging, kBarrier, kCommitting, kAborting };

// What a round is about and who asked for it.
struct Round {
  std::uint64_t number = 0;
  std::uint64_t key = 0;
  std::uint64_t value = 0;
  NodeId client{};
  SlotId client_slot{};
  RequestId request{};
  AREAL_FIELDS(number, key, value, client, client_slot, request)
};

// The last answer to one client, for the case that it asks again.
struct Answer {
  RequestId request{};
  SetDone done{};
  AREAL_FIELDS(request, done)
};

// Invariants: 1. waiting_ is a subset of members_. 2. waiting_ is empty but for kStaging and kCommitting.
// 3. round_ is set exactly in the phases after kIdle. 4. group_ is set in the phases after kIdle.
class Leader {
 public:
  static constexpr std::string_view kName = "toy_leader";

  explicit Leader(std::vector<NodeId> followers) : followers_(std::move(followers)) {}

  void step(const proto::Input& input, proto::Outbox& out) {
    std::visit(Overloaded{[&](const port::Started& started) { on_started(started, out); },
                          [&](const port::ProcessStarted& started) { on_process_started(started); },
                          [&](const port::ProcessExited& exited) { on_exited(exited, out); },
                          [&](const port::MessageIn& message) { on_message(message, out); },
                          [&](const port::TimerFired&) { on_timer(out); },
                          [&](const port::GroupJoined& joined) { on_joined(joined, out); },
                          [&](const port::BatchDone& done) { on_batch(done, out); },
                          [&](const port::GroupAborted& aborted) { on_aborted(aborted, out); }, [](const auto&) {}},
               input);
    check_invariants();
  }

  void list_waits(proto::WaitList& waits) const {
    const std::string_view what = phase_ == LeaderPhase::kStaging ? "staged" : "committed";
    for (const auto& entry : waiting_) waits.push_back({entry.key, what, round_->number});
    if (phase_ == LeaderPhase::kBarrier) waits.push_back({NodeId{}, "barrier", round_->number});
    if (phase_ == LeaderPhase::kAborting) waits.push_back({NodeId{}, "abort", group_.value});
  }

  [[nodiscard]] LeaderPhase phase() const { return phase_; }
  [[nodiscard]] const Table<std::uint64_t, std::uint64_t>& values() const { return values_; }
  [[nodiscard]] std::size_t member_count() const { return members_.size(); }

  AREAL_FIELDS(phase_, incarnation_, port_, last_round_, last_group_, group_, joined_, group_is_stale_, outcome_,
               round_, members_, waiting_, values_, answers_)

 private:
  void on_started(const port::Started& started, proto::Outbox& out) {
    incarnation_ = started.incarnation;
    port_ = started.port;
    for (const NodeId follower : followers_) {
      members_.insert(follower, 0);
      out.push(port::StartProcess{OpId{follower.value}, follower, 0});
    }
    if (members_.empty()) phase_ = LeaderPhase::kIdle;
  }

  void on_process_started(const port::ProcessStarted& started) {
    if (started.outcome == port::Outcome::kOk) {
      members_.edit(started.node, [&](Incarnation& incarnation) { incarnation = started.incarnation; });
    } else {
      members_.erase(started.node);
    }
    leave_starting();
  }

  void leave_starting() {
    if (phase_ != LeaderPhase::kStarting) return;
    for (const auto& entry : members_) {
      if (entry.value == 0) return;
    }
    phase_ = LeaderPhase::kIdle;
  }

  void on_exited(const port::ProcessExited& exited, proto::Outbox& out) {
    const Incarnation* known = members_.find(exited.node);
    if (known == nullptr || *known != exited.incarnation) return;
    members_.erase(exited.node);
    waiting_.erase(exited.node);
    group_is_stale_ = true;
    switch (phase_) {
      case LeaderPhase::kStarting:
        leave_starting();
        break;
      case LeaderPhase::kStaging:
      case LeaderPhase::kBarrier:
        begin_abort(port::Outcome::kPeerGone, out);
        break;
      case LeaderPhase::kCommitting:
        end_commit_if_done(out);
        break;
      case LeaderPhase::kIdle:
      case LeaderPhase::kAborting:
        break;
    }
  }

  void on_message(const port::MessageIn& message, proto::Outbox& out) {
    const bool known = dispatch_record<SetValue, Staged, Committed>(
        message.body,
        Overloaded{
            [&](const SetValue& set) { on_set(message, set, out); },
            [&](const Staged& staged) { on_reply(message, LeaderPhase::kStaging, staged.round, out); },
            [&](const Committed& committed) { on_reply(message, LeaderPhase::kCommitting, committed.round, out); }});
    if (!known) out.note(make_refused(message, port::Refusal::kUnknown, message.body.kind));
  }

  void on_set(const port::MessageIn& message, const SetValue& set, proto::Outbox& out) {
    const Answer* answer = answers_.find(message.from);
    if (answer != nullptr && message.request <= answer->request) {
      if (message.request == answer->request) out.push(make_reply(message, answer->done));
      return;
    }
    if (round_.has_value() && round_->client == message.from && round_->request == message.request) return;
    const bool no_room = (values_.full() && !values_.contains(set.key)) || (answer == nullptr && answers_.full());
    if (phase_ != LeaderPhase::kIdle || no_room) {
      out.note(make_refused(message, port::Refusal::kBusy, set.key));
      out.push(make_reply(message, SetDone{set.key, port::Outcome::kRefused}));
      return;
    }
    round_ = Round{++last_round_, set.key, set.value, message.from, message.from_slot, message.request};
    phase_ = LeaderPhase::kStaging;
    outcome_ = port::Outcome::kOk;
    form_group(out);
    ask_all(out);
    begin_barrier_if_ready(out);
  }

  void form_group(proto::Outbox& out) {
    if (group_ != GroupId{} && !group_is_stale_) return;
    if (group_ != GroupId{}) out.push(port::LeaveGroup{group_});
    group_ = GroupId{(std::uint64_t{incarnation_} << 32U) | ++last_group_};
    joined_ = false;
    group_is_stale_ = false;
    out.push(port::JoinGroup{group_, port::Backend::kGloo, 0, world(), port_});
  }

  // Asks every member anew, as the phase says.
  void ask_all(proto::Outbox& out) {
    waiting_.clear();
    for (const auto& entry : members_) waiting_.insert(entry.key, true);
    if (!waiting_.empty()) ask_waiting(out);
  }

  void ask_waiting(proto::Outbox& out) {
    std::uint32_t rank = 0;
    for (const auto& entry : members_) {
      ++rank;
      if (!waiting_.contains(entry.key)) continue;
      const auto kind = port::MessageKind::kRequest;
      if (phase_ == LeaderPhase::kStaging) {
        const Stage stage{round_->number, round_->key, round_->value, group_, rank, world(), port_};
        out.push(make_send(entry.key, SlotId{}, kind, request_now(), stage));
      } else {
        out.push(make_send(entry.key, SlotId{}, kind, request_now(), Commit{round_->number}));
      }
    }
    out.push(port::ArmTimer{kRetryTimer, kRetryAfter});
  }

  void on_timer(proto::Outbox& out) {
    if (!waiting_.empty()) ask_waiting(out);
  }

  void on_reply(const port::MessageIn& message, LeaderPhase phase, std::uint64_t round, proto::Outbox& out) {
    const Incarnation* known = members_.find(message.from);
    if (known == nullptr || *known != message.from_incarnation) {
      out.note(make_refused(message, port::Refusal::kUnknown, round));
      return;
    }
    if (phase_ != phase || round_->number != round || message.request != request_now()) {
      out.note(make_refused(message, port::Refusal::kStaleAttempt, round));
      return;
    }
    waiting_.erase(message.from);
    if (waiting_.empty()) out.push(port::DisarmTimer{kRetryTimer});
    if (phase_ == LeaderPhase::kStaging)
      begin_barrier_if_ready(out);
    else
      end_commit_if_done(out);
  }

  void on_joined(const port::GroupJoined& joined, proto::Outbox& out) {
    if (joined.group != group_ || phase_ != LeaderPhase::kStaging) return;
    if (joined.outcome != port::Outcome::kOk) return begin_abort(joined.outcome, out);
    joined_ = true;
    begin_barrier_if_ready(out);
  }

  void begin_barrier_if_ready(proto::Outbox& out) {
    if (!waiting_.empty() || !joined_) return;
    phase_ = LeaderPhase::kBarrier;
    port::PostBatch barrier;
    barrier.group = group_;
    barrier.batch = BatchId{round_->number};
    barrier.kind = port::BatchKind::kBarrier;
    barrier.tag = round_->number;
    out.push(barrier);
  }

  void on_batch(const port::BatchDone& done, proto::Outbox& out) {
    if (phase_ != LeaderPhase::kBarrier || done.group != group_ || done.batch != BatchId{round_->number}) return;
    if (done.outcome != port::Outcome::kOk) return begin_abort(done.outcome, out);
    put(values_, round_->key, round_->value);
    phase_ = LeaderPhase::kCommitting;
    ask_all(out);
    end_commit_if_done(out);
  }

  void end_commit_if_done(proto::Outbox& out) {
    if (waiting_.empty()) end_round(out);
  }

  void begin_abort(port::Outcome outcome, proto::Outbox& out) {
    waiting_.clear();
    out.push(port::DisarmTimer{kRetryTimer});
    out.push(port::AbortGroup{group_});
    outcome_ = outcome;
    phase_ = LeaderPhase::kAborting;
  }

  void on_aborted(const port::GroupAborted& aborted, proto::Outbox& out) {
    if (phase_ != LeaderPhase::kAborting || aborted.group != group_) return;
    group_ = GroupId{};
    end_round(out);
  }

  void end_round(proto::Outbox& out) {
    const SetDone done{round_->key, outcome_};
    put(answers_, round_->client, Answer{round_->request, done});
    out.push(make_send(round_->client, round_->client_slot, port::MessageKind::kReply, round_->request, done));
    round_.reset();
    phase_ = LeaderPhase::kIdle;
  }

  template <class Key, class Value>
  static void put(Table<Key, Value>& table, const Key& key, const Value& value) {
    if (table.edit(key, [&](Value& present) { present = value; })) return;
    const bool has_room = table.insert(key, value);
    AREAL_CHECK(has_room);
  }

  void check_invariants() const {
    for (const auto& entry : waiting_) AREAL_CHECK(members_.contains(entry.key));
    const bool asks = phase_ == LeaderPhase::kStaging || phase_ == LeaderPhase::kCommitting;
    const bool busy = phase_ != LeaderPhase::kStarting && phase_ != LeaderPhase::kIdle;
    AREAL_CHECK(asks || waiting_.empty());
    AREAL_CHECK(busy == round_.has_value());
    AREAL_CHECK(!busy || group_ != GroupId{});
  }

  [[nodiscard]] std::uint32_t world() const { return static_cast<std::uint32_t>(members_.size()) + 1; }
  [[nodiscard]] RequestId request_now() const {
    return RequestId{round_->number * 2 + (phase_ == LeaderPhase::kStaging ? 0U : 1U)};
  }

  // Set at construction; not state.
  std::vector<NodeId> followers_;

  LeaderPhase phase_ = LeaderPhase::kStarting;
  Incarnation incarnation_ = 0;
  std::uint16_t port_ = 0;
  std::uint64_t last_round_ = 0;
  std::uint32_t last_group_ = 0;
  GroupId group_;
  bool joined_ = false;
  bool group_is_stale_ = false;
  port::Outcome outcome_ = port::Outcome::kOk;
  std::optional<Round> round_;
  Table<NodeId, Incarnation> members_{16};  // Living followers; incarnation 0 until started.
  Table<NodeId, bool> waiting_{16};         // A set.
  Table<std::uint64_t, std::uint64_t> values_{kMaxKeys};
  Table<NodeId, Answer> answers_{kMaxClients};
};

// ---- Follower ----

// A value that waits for its commit, and the request that asked for it.
struct StagedValue {
  Stage stage{};
  RequestId request{};
  SlotId leader_slot{};
  AREAL_FIELDS(stage, request, leader_slot)
};

class Follower {
 public:
  static constexpr std::string_view kName = "toy_follower";

  explicit Follower(NodeId leader) : leader_(leader) {}

  void step(const proto::Input& input, proto::Outbox& out) {
    std::visit(Overloaded{[&](const port::MessageIn& message) { on_message(message, out); },
                          [&](const port::GroupJoined& joined) { on_joined(joined, out); }, [](const auto&) {}},
               input);
  }

  void list_waits(proto::WaitList& waits) const {
    if (staged_.has_value()) waits.push_back({leader_, joined_ ? "commit" : "join", staged_->stage.round});
  }

  [[nodiscard]] const Table<std::uint64_t, std::uint64_t>& values() const { return values_; }

  AREAL_FIELDS(group_, joined_, committed_, staged_, values_)

 private:
  void on_message(const port::MessageIn& message, proto::Outbox& out) {
    const auto on_stage_body = [&](const Stage& stage) { on_stage(message, stage, out); };
    const auto on_commit_body = [&](const Commit& commit) { on_commit(message, commit, out); };
    const bool known = message.from == leader_ &&
                       dispatch_record<Stage, Commit>(message.body, Overloaded{on_stage_body, on_commit_body});
    if (!known) out.note(make_refused(message, port::Refusal::kUnknown, message.body.kind));
  }

  void on_stage(const port::MessageIn& message, const Stage& stage, proto::Outbox& out) {
    const std::uint64_t newest = staged_.has_value() ? staged_->stage.round : committed_;
    if (stage.round < newest || stage.round <= committed_) {
      out.note(make_refused(message, port::Refusal::kStaleAttempt, stage.round));
      return;
    }
    if (staged_.has_value() && stage.round == newest) {
      if (joined_) reply_staged(out);
      return;
    }
    if (values_.full() && !values_.contains(stage.key)) {
      out.note(make_refused(message, port::Refusal::kBusy, stage.key));
      return;
    }
    staged_ = StagedValue{stage, message.request, message.from_slot};
    if (stage.group != group_) {
      if (joined_) out.push(port::LeaveGroup{group_});
      group_ = stage.group;
      joined_ = false;
      out.push(port::JoinGroup{group_, port::Backend::kGloo, stage.rank, stage.world, stage.port});
    } else if (joined_) {
      meet(out);
    }
  }

  void on_joined(const port::GroupJoined& joined, proto::Outbox& out) {
    if (joined.group != group_ || joined.outcome != port::Outcome::kOk || !staged_.has_value()) return;
    joined_ = true;
    meet(out);
  }

  void meet(proto::Outbox& out) {
    reply_staged(out);
    port::PostBatch barrier;
    barrier.group = group_;
    barrier.batch = BatchId{staged_->stage.round};
    barrier.kind = port::BatchKind::kBarrier;
    barrier.tag = staged_->stage.round;
    out.push(barrier);
  }

  void reply_staged(proto::Outbox& out) const {
    out.push(make_send(leader_, staged_->leader_slot, port::MessageKind::kReply, staged_->request,
                       Staged{staged_->stage.round}));
  }

  void on_commit(const port::MessageIn& message, const Commit& commit, proto::Outbox& out) {
    if (staged_.has_value() && staged_->stage.round == commit.round) {
      const Stage stage = staged_->stage;
      if (!values_.edit(stage.key, [&](std::uint64_t& value) { value = stage.value; })) {
        const bool has_room = values_.insert(stage.key, stage.value);
        AREAL_CHECK(has_room);
      }
      committed_ = stage.round;
      staged_.reset();
    }
    if (commit.round == committed_) {
      out.push(make_reply(message, Committed{commit.round}));
    } else {
      out.note(make_refused(message, port::Refusal::kUnknown, commit.round));
    }
  }

  // Set at construction; not state.
  NodeId leader_;

  GroupId group_;
  bool joined_ = false;
  std::uint64_t committed_ = 0;
  std::optional<StagedValue> staged_;
  Table<std::uint64_t, std::uint64_t> values_{kMaxKeys};
};

}  // namespace areal::seam
