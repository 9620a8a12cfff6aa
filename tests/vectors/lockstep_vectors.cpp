// Worked examples of an idealised trainer and its rollouts, in lockstep: what the limit on admissions bounds, and what
// it does not.
//
// Task i lasts durations[i mod n]. One is admitted while nothing is paused and the capacity is above 0. At equal times
// completions, by id, come before what the trainer does, then admissions, then a waiting trainer takes a batch of the
// ready tasks with the smallest ids, trains, pauses for the update, and bumps the version.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/proto/staleness.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

enum class Phase : std::uint8_t { kWaiting, kTraining, kUpdating };

struct Task {
  std::int64_t id = 0;
  std::int64_t admitted_at = 0;  // Version.
  std::int64_t ends = 0;
  bool accepted = true;
};

class Lockstep {
 public:
  explicit Lockstep(const Json& in)
      : in_(in),
        manager_({in.at("mc"), in.at("consumer_batch_size"), in.at("eta")}),
        rejections_count_(in.value("dynamic", false)) {}

  Json run() {
    while (true) {
      advance();
      if (step_ == in_.at("steps")) break;
      const std::int64_t next = next_time();
      if (next < 0) return {{"result", "deadlock"}, {"accepted", manager_.counters().accepted}};
      now_ = next;
    }
    return {{"rows", rows_},
            {"final",
             {{"result", "ok"}, {"time", now_}, {"admitted", next_id_}, {"accepted", manager_.counters().accepted}}},
            {"max_staleness", max_staleness_}};
  }

 private:
  // Everything that happens at this time.
  void advance() {
    complete();
    trainer_event();
    complete();  // What the update held back.
    if (step_ == in_.at("steps")) return;
    admit();
    take_batch();
  }

  void complete() {
    if (phase_ == Phase::kUpdating) return;
    for (const Task& task : running_) {  // By id.
      if (task.ends > now_) continue;
      task.accepted ? manager_.accept() : manager_.reject();
      if (task.accepted || rejections_count_) finished_.push_back(task);
    }
    std::erase_if(running_, [&](const Task& task) { return task.ends <= now_; });
  }

  void trainer_event() {
    if (phase_ == Phase::kWaiting || trainer_due_ != now_) return;
    if (phase_ == Phase::kTraining) {
      phase_ = Phase::kUpdating;
      trainer_due_ = now_ + in_.at("dupd").get<std::int64_t>();
      return;
    }
    phase_ = Phase::kWaiting;
    manager_.set_version(++version_);
    ++step_;
  }

  void admit() {
    const Json& durations = in_.at("durs");
    while (phase_ != Phase::kUpdating && manager_.capacity() > 0) {
      manager_.submit();
      const auto lasts = durations[static_cast<std::size_t>(next_id_) % durations.size()].get<std::int64_t>();
      const bool accepted = !in_.contains("accept_rule") || next_id_ % 4 < 2;
      running_.push_back({next_id_++, version_, now_ + lasts, accepted});
    }
  }

  void take_batch() {
    const auto batch = in_.at("trainer_batch").get<std::size_t>();
    if (phase_ != Phase::kWaiting || finished_.size() < batch) return;
    std::ranges::stable_sort(finished_, {}, &Task::id);
    Json row = {{"step", step_},          {"start_time", now_},
                {"tasks", Json::array()}, {"staleness", Json::array()},
                {"attempts", batch},      {"admission_versions", Json::array()}};
    for (std::size_t at = 0; at < batch; ++at) {
      if (!finished_[at].accepted) continue;
      const std::int64_t age = version_ - finished_[at].admitted_at;
      row["tasks"].push_back(finished_[at].id);
      row["admission_versions"].push_back(finished_[at].admitted_at);
      row["staleness"].push_back(age);
      max_staleness_ = std::max(max_staleness_, age);
    }
    finished_.erase(finished_.begin(), finished_.begin() + static_cast<std::ptrdiff_t>(batch));
    rows_.push_back(row);
    phase_ = Phase::kTraining;
    trainer_due_ = now_ + in_.at("dtrain").get<std::int64_t>();
  }

  // Negative: nothing will ever happen again.
  [[nodiscard]] std::int64_t next_time() const {
    std::int64_t next = phase_ == Phase::kWaiting ? -1 : trainer_due_;
    if (phase_ == Phase::kUpdating) return next;
    for (const Task& task : running_) next = next < 0 ? task.ends : std::min(next, task.ends);
    return next;
  }

  const Json& in_;
  proto::StalenessManager manager_;
  bool rejections_count_ = false;
  Phase phase_ = Phase::kWaiting;
  std::int64_t now_ = 0;
  std::int64_t trainer_due_ = -1;
  std::int64_t version_ = 0;
  std::int64_t step_ = 0;
  std::int64_t next_id_ = 0;
  std::int64_t max_staleness_ = 0;
  std::vector<Task> running_;
  std::vector<Task> finished_;  // Not taken yet.
  Json rows_ = Json::array();
};

Outcome check_lockstep(const Json& vector) {
  return expect_equal(vector.at("expected"), Lockstep(vector.at("inputs")).run());
}

}  // namespace

void add_lockstep(std::vector<Checker>& registry) {
  registry.push_back({"spec_examples", "sim.lockstep", check_lockstep});
}

}  // namespace areal::vectors
