// Drives one sender or receiver of weights through whole updates, answering what it asks for as a calm world would.
//
// Every effect gets a short label ("compute invert 1", "move counts 0"), so that a test can say in which order things
// happened, answer one of them otherwise, or hold it back. What a device or a group must keep to is kept: a stopped
// operation and the batches of an aborted group end as aborted, each exactly once. Not thread-safe.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/proto/update_receiver.h"
#include "engine/proto/update_sender.h"
#include "tests/unit/effects.h"
#include "tests/unit/rollout_cluster.h"

namespace areal::test {

// How an operation ends; fields that its kind does not have are not looked at.
struct Ending {
  port::Outcome outcome = port::Outcome::kOk;
  std::uint64_t value = 0;
  std::uint64_t count = 0;
  std::uint64_t total = 0;
};

// Two wire dtypes; engines are transfer ranks 0 and 1, trainers 2 and 3.
inline std::shared_ptr<const proto::MemberPlan> small_plan(std::uint32_t rank) {
  proto::MemberPlan plan;
  plan.rank = rank;
  plan.sends = rank >= 2;
  plan.passes = {{DType::kBf16, DType::kBf16, 100, 200}, {DType::kF32, DType::kF32, 10, 40}};
  return std::make_shared<const proto::MemberPlan>(std::move(plan));
}

// Three windows: of dense parameters, of both kinds, of experts alone. Dense parts have a copy on the other trainer;
// experts have one if `experts_world` is 2.
inline std::shared_ptr<const proto::ReconstructPlan> small_windows(std::uint32_t experts_world) {
  proto::ReconstructPlan plan;
  plan.places = {proto::ReplicaPlace{1, 0, 2}, proto::ReplicaPlace{2, 0, experts_world}};
  plan.windows.resize(3);
  plan.windows[0].shares[0] = {4, 400, 11};
  plan.windows[1].shares = {proto::WindowShare{2, 200, 12}, proto::WindowShare{3, 300, 13}};
  plan.windows[2].shares[1] = {5, 500, 14};
  plan.parameters = 14;
  plan.elements = 350;
  return std::make_shared<const proto::ReconstructPlan>(std::move(plan));
}

inline proto::MemberOptions sender_options(bool delta = true, std::uint32_t experts_world = 2) {
  proto::MemberOptions options;
  options.role = port::Role::kTrainer;
  options.role_world = 2;
  options.plan = small_plan(2);
  options.staging_bytes = 240;
  options.gradient_bytes = 1'400;
  options.delta = delta;
  options.reconstruct = small_windows(experts_world);
  return options;
}

inline proto::MemberOptions receiver_options(bool delta = true) {
  proto::MemberOptions options;
  options.role = port::Role::kEngine;
  options.role_world = 2;
  options.plan = small_plan(0);
  options.staging_bytes = 240;
  options.delta = delta;
  return options;
}

template <class P>
class MemberDriver {
 public:
  explicit MemberDriver(P protocol) : member(std::move(protocol)) {}

  // Begins to load the model.
  void begin() {
    started_ = true;
    feed(port::Started{1, 0, 1});
    run();
  }
  // Loads the model and joins the groups of `epoch`.
  void connect(Epoch epoch) {
    if (!started_) begin();
    const std::uint32_t rank = protocol().member().options().plan->rank;
    ask(proto::InitGroups{epoch, rank, 4, 2, 1, 4'000, epoch == 1});
  }
  // Prepares and executes; what is held back stays open.
  void attempt(const proto::Execute& asked) {
    ask(proto::Prepare{asked.epoch, asked.version, asked.attempt, asked.base, asked.mode});
    log.clear(), notes.clear();
    ask(asked);
  }
  void commit(const proto::Execute& asked) { ask(proto::Commit{asked.epoch, asked.version, asked.attempt}); }
  template <RecordType T>
  void ask(const T& body) {
    feed(port::MessageIn{kGateway, 1, {}, port::MessageKind::kRequest, RequestId{++requests_}, to_record(body)});
    run();
  }
  template <RecordType T>
  void tell(const T& body) {
    feed(port::TellIn{proto::kTrainRankSlot, to_record(body)});
    run();
  }
  // Answers everything that is not held back, in the order in which it was asked for.
  void run() {
    while (true) {
      const auto next = std::ranges::find_if(open_, [&](const Asked& asked) { return may_end(asked); });
      if (next == open_.end()) return;
      const Asked asked = *next;
      open_.erase(next);
      feed(ended(asked));
    }
  }
  void release() {
    held.clear();
    run();
  }
  [[nodiscard]] P& protocol() { return member.protocol(); }

  // The last body of type T that was answered.
  template <RecordType T>
  [[nodiscard]] std::vector<T> replies() const {
    std::vector<T> found;
    for (const Record& body : replies_) dispatch_record<T>(body, [&](const T& said) { found.push_back(said); });
    return found;
  }
  template <RecordType T>
  [[nodiscard]] std::vector<T> noted() const {
    std::vector<T> found;
    for (const Record& body : notes) dispatch_record<T>(body, [&](const T& said) { found.push_back(said); });
    return found;
  }
  // Buffers of the tag that were reserved and not given back.
  [[nodiscard]] std::size_t held_buffers(port::MemoryTag tag) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        buffers_, [&](const auto& entry) { return entry.second == tag && ready_.contains(entry.first); }));
  }
  [[nodiscard]] std::size_t still_open() const { return open_.size(); }
  // All labels that begin with one of these.
  [[nodiscard]] std::vector<std::string> only(const std::vector<std::string>& beginnings) const {
    std::vector<std::string> found;
    for (const std::string& label : log) {
      if (std::ranges::any_of(beginnings, [&](const std::string& begin) { return label.starts_with(begin); })) {
        found.push_back(label);
      }
    }
    return found;
  }

  Driven<P> member;
  std::vector<std::string> log;           // Labels since the last attempt began.
  std::vector<Record> notes;              // The same.
  std::vector<port::PostBatch> batches;   // All.
  std::map<std::string, Ending> endings;  // By label; how it ends, if not as usual.
  std::set<std::string> held;             // Labels that do not end now.
  std::vector<std::string> broken;        // What the member did that no device or group allows.

 private:
  struct Asked {
    std::string label;
    proto::Effect effect;
  };

  static std::string group_label(GroupId group) {
    for (Epoch epoch = 1; epoch < 8; ++epoch) {
      if (group == proto::payload_group(epoch)) return "payload";
      if (group == proto::control_group(epoch)) return "control";
      if (group == proto::train_group(epoch)) return "train";
      for (std::uint32_t replica = 1; replica < 4; ++replica) {
        if (group == proto::replica_group(epoch, replica)) return "copies " + std::to_string(replica);
      }
    }
    return "unknown";
  }
  static std::string batch_label(const port::PostBatch& batch) {
    using port::BatchKind;
    if ((batch.tag & 0xFF) == static_cast<std::uint64_t>(proto::MeetingKind::kLiveness) && batch.version == 0) {
      return "liveness";
    }
    const std::string part = std::to_string(batch.part);
    switch (batch.kind) {
      case BatchKind::kSend:
      case BatchKind::kReceive:
        return "move " + std::string(port::enum_names(batch.round)[static_cast<std::size_t>(batch.round)]) + " " + part;
      case BatchKind::kReduce:
        return "reduce " + part + " " + group_label(batch.group);
      case BatchKind::kMax:
        return (batch.tag & 0xFF) == static_cast<std::uint64_t>(proto::MeetingKind::kNeed) ? "max need" : "max masks";
      case BatchKind::kMin:
        return "min mode";
      case BatchKind::kSum:
        return "sum";
      case BatchKind::kBarrier:
        return "barrier";
    }
    return "";
  }

  void feed(const proto::Input& input) {
    member.feed(input);
    const std::vector<proto::Effect> effects(member.all().begin(), member.all().end());
    for (const proto::Effect& effect : effects) {
      std::visit([&](const auto& asked) { take(asked); }, effect);
    }
    for (std::deque<proto::Input> next = std::exchange(at_once_, {}); !next.empty(); next.pop_front()) {
      feed(next.front());
    }
  }
  void open(std::string label, const proto::Effect& effect) {
    log.push_back(label);
    open_.push_back({std::move(label), effect});
  }

  template <class E>
  void take(const E& /*effect*/) {}
  void take(const port::Note& note) { notes.push_back(note.body); }
  void take(const port::Send& send) {
    replies_.push_back(send.body);
    log.push_back("reply");
  }
  void take(const port::Tell& told) {
    log.push_back("tell");
    if (told.body.kind == proto::WantWrite::kKind && !held.contains("grant")) {
      at_once_.push_back(port::TellIn{proto::kServerSlot, to_record(proto::WriteGranted{})});
    }
  }
  void take(const port::ReserveBuffer& asked) {
    buffers_[asked.buffer] = asked.tag;
    open(asked.tag == port::MemoryTag::kGradients ? "reserve gradients" : "reserve staging", asked);
  }
  void take(const port::ReleaseBuffer& asked) {
    if (!buffers_.contains(asked.buffer)) broken.push_back("released what it does not hold");
    open(buffers_[asked.buffer] == port::MemoryTag::kGradients ? "release gradients" : "release staging", asked);
  }
  void take(const port::StartCompute& asked) {
    const bool by_window = asked.what == port::ComputeKind::kInvert || asked.what == port::ComputeKind::kCompare;
    std::string label = "compute " + std::string(port::enum_names(asked.what)[static_cast<std::size_t>(asked.what)]);
    if (by_window) label += " " + std::to_string(asked.amount);
    computes.push_back(asked);
    open(std::move(label), asked);
  }
  void take(const port::StopCompute& stop) {
    end_early([&](const proto::Effect& effect) {
      const auto* compute = std::get_if<port::StartCompute>(&effect);
      return compute != nullptr && compute->op == stop.op;
    });
  }
  void take(const port::PostBatch& asked) {
    batches.push_back(asked);
    open(batch_label(asked), asked);
  }
  void take(const port::JoinGroup& asked) { open("join " + group_label(asked.group), asked); }
  void take(const port::LeaveGroup& asked) {
    log.push_back("leave " + group_label(asked.group));
    const bool busy = std::ranges::any_of(open_, [&](const Asked& one) { return is_of(one.effect, asked.group); });
    if (busy) broken.push_back("left a group in which something is under way");
  }
  void take(const port::AbortGroup& asked) {
    end_early([&](const proto::Effect& effect) { return is_of(effect, asked.group); });
    open("abort " + group_label(asked.group), asked);
  }

  static bool is_of(const proto::Effect& effect, GroupId group) {
    const auto* batch = std::get_if<port::PostBatch>(&effect);
    const auto* join = std::get_if<port::JoinGroup>(&effect);
    return (batch != nullptr && batch->group == group) || (join != nullptr && join->group == group);
  }
  void end_early(const std::function<bool(const proto::Effect&)>& match) {
    for (auto it = open_.begin(); it != open_.end();) {
      if (!match(it->effect)) {
        ++it;
        continue;
      }
      at_once_.push_back(input_of(it->effect, {port::Outcome::kAborted}));
      it = open_.erase(it);
    }
  }

  // A buffer is reserved before it is given back.
  [[nodiscard]] bool may_end(const Asked& asked) const {
    const auto* release = std::get_if<port::ReleaseBuffer>(&asked.effect);
    const bool waits = release != nullptr && std::ranges::any_of(open_, [&](const Asked& other) {
                         const auto* reserve = std::get_if<port::ReserveBuffer>(&other.effect);
                         return reserve != nullptr && reserve->buffer == release->buffer;
                       });
    return !waits && !held.contains(asked.label);
  }
  proto::Input ended(const Asked& asked) {
    const auto other = endings.find(asked.label);
    return input_of(asked.effect, other != endings.end() ? other->second : usual(asked.effect));
  }
  // The other ranks say the same as this one.
  static Ending usual(const proto::Effect& effect) {
    Ending ending;
    if (const auto* batch = std::get_if<port::PostBatch>(&effect)) {
      const bool verifies = batch->kind == port::BatchKind::kSum;
      ending.value = verifies ? 0 : batch->value;
      ending.count = verifies ? 0 : batch->count;
    } else if (const auto* compute = std::get_if<port::StartCompute>(&effect)) {
      ending.count = 7;
      ending.total = compute->what == port::ComputeKind::kPack || compute->what == port::ComputeKind::kPackDelta;
    }
    return ending;
  }
  proto::Input input_of(const proto::Effect& effect, const Ending& ending) {
    if (const auto* batch = std::get_if<port::PostBatch>(&effect)) {
      return port::BatchDone{batch->group, batch->batch, ending.outcome, {}, ending.value, ending.count};
    }
    if (const auto* compute = std::get_if<port::StartCompute>(&effect)) {
      return port::ComputeDone{compute->op, compute->what, ending.outcome, compute->version, ending.count, ending.total,
                               {}};
    }
    if (const auto* join = std::get_if<port::JoinGroup>(&effect)) return port::GroupJoined{join->group, ending.outcome};
    if (const auto* abort = std::get_if<port::AbortGroup>(&effect)) return port::GroupAborted{abort->group};
    if (const auto* release = std::get_if<port::ReleaseBuffer>(&effect)) {
      ready_.erase(release->buffer);
      return port::BufferReleased{release->buffer};
    }
    const BufferId buffer = std::get<port::ReserveBuffer>(effect).buffer;
    if (ending.outcome == port::Outcome::kOk) ready_.insert(buffer);
    return port::BufferReady{buffer, ending.outcome};
  }

  bool started_ = false;
  std::uint64_t requests_ = 0;
  std::deque<Asked> open_;
  std::deque<proto::Input> at_once_;
  std::vector<Record> replies_;
  std::map<BufferId, port::MemoryTag> buffers_;
  std::set<BufferId> ready_;

 public:
  std::vector<port::StartCompute> computes;  // All.
};

}  // namespace areal::test
