#include "engine/real/host/real_compute.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/rng.h"
#include "engine/node/tiny_decode.h"
#include "engine/real/host/checkpoint_file.h"

namespace areal::host {
namespace {

using port::ComputeKind;
using port::Outcome;

constexpr Duration kRewardTime = 50_ms;

bool is_apply(ComputeKind what) { return what == ComputeKind::kApply || what == ComputeKind::kApplyDelta; }

}  // namespace

RealCompute::RealCompute(Loop& loop, RealComputeOptions options)
    : loop_(loop), options_(std::move(options)), place_(options_.room->node(options_.node)) {
  const node::RoomPlan& room = *options_.room;
  if (place_.role == port::Role::kTrainer) trainer_.emplace(room.tiny, place_.train_rank);
  if (place_.role == port::Role::kEngine) {
    engine_.emplace(node::TinyReplica(room.tiny, static_cast<std::uint32_t>(place_.engine.value), place_.infer_rank,
                                      room.policies.aliases));
  }
  if (trainer_) worker_ = std::make_unique<Worker>(loop_);
}

RealCompute::~RealCompute() = default;

Duration RealCompute::duration_of(const port::StartCompute& asked) const {
  if (asked.what == ComputeKind::kLoadModel) return options_.room->scenario.devices.load_time;
  if (asked.what == ComputeKind::kGradients) return options_.room->scenario.train.step_time;
  if (asked.what == ComputeKind::kReward) return kRewardTime;
  return {};
}

// ---- One after the other ----

void RealCompute::start(SlotId slot, const port::StartCompute& effect) {
  if (effect.what == ComputeKind::kGenerate) {
    generations_.push_back({slot, effect});
    begin(generations_.back());
    return;
  }
  queue_.push_back({slot, effect});
  run_next();
}

void RealCompute::run_next() {
  if (queue_.empty() || queue_.front().running) return;
  Queued& first = queue_.front();
  first.running = true;
  if (is_apply(first.asked.what)) weights_changed();
  const bool on_disk =
      first.asked.what == ComputeKind::kSaveCheckpoint || first.asked.what == ComputeKind::kLoadCheckpoint;
  if (on_disk && trainer_) {
    save_or_load(first);
  } else {
    first.timer = loop_.arm(duration_of(first.asked), [this] { finish(options_.fails(queue_.front().asked.what)); });
  }
}

void RealCompute::finish(bool cut_short) {
  const port::StartCompute asked = queue_.front().asked;
  port::ComputeDone done{asked.op, asked.what, cut_short ? Outcome::kFailed : Outcome::kOk, asked.version, 0, 0, {}};
  node::TinyCheckpoints no_slots;
  if (trainer_) {
    done = trainer_->work(*options_.room, asked, cut_short, no_slots);
  } else if (engine_) {
    done = engine_->work(*options_.room, asked, cut_short);
    if (is_apply(asked.what)) weights_changed();
  } else if (asked.what == ComputeKind::kReward && !cut_short) {
    done.count = node::rewards_differ(options_.seed, asked.seed) ? 1 : 0;
  }
  end_first(done);
}

void RealCompute::end_first(const port::ComputeDone& done) {
  const SlotId slot = queue_.front().slot;
  queue_.pop_front();
  options_.deliver(slot, done);
  run_next();
}

// The rank's own words are made and taken on the loop; the worker waits for the disk alone.
void RealCompute::save_or_load(const Queued& queued) {
  const port::StartCompute asked = queued.asked;
  const std::filesystem::path file =
      options_.checkpoints / fmt::format("rank{}.slot{}", place_.train_rank, asked.amount % 2);
  auto slots = std::make_shared<node::TinyCheckpoints>();
  const std::size_t slot = asked.amount % 2;
  if (asked.what == ComputeKind::kSaveCheckpoint) {
    const port::ComputeDone done = trainer_->work(*options_.room, asked, options_.fails(asked.what), *slots);
    if (done.outcome != Outcome::kOk) {
      loop_.post([this, done] { end_first(done); });
      return;
    }
    worker_->run([this, file, slots, slot, done]() -> std::function<void()> {
      const Status saved = save_checkpoint(file, (*slots)[slot].version, (*slots)[slot].words);
      port::ComputeDone ended = done;
      if (!saved) ended.outcome = Outcome::kFailed;
      return [this, ended] { end_first(ended); };
    });
    return;
  }
  worker_->run([this, file, slots, slot, asked]() -> std::function<void()> {
    Result<Checkpoint> loaded = load_checkpoint(file);
    if (loaded) (*slots)[slot] = {loaded->version, std::move(loaded->words)};
    const bool whole = loaded.has_value();
    return [this, slots, asked, whole] {
      end_first(trainer_->work(*options_.room, asked, !whole || options_.fails(asked.what), *slots));
    };
  });
}

void RealCompute::stop(SlotId /*slot*/, const port::StopCompute& effect) {
  const auto queued = std::ranges::find_if(queue_, [&](const Queued& one) { return one.asked.op == effect.op; });
  if (queued != queue_.end()) {
    const bool on_disk = queued->running && !loop_.cancel(queued->timer);
    if (on_disk) return;  // It ends by itself, soon.
    port::ComputeDone done{effect.op, queued->asked.what, Outcome::kAborted, 0, 0, 0, {}};
    if (queued->running && engine_ && is_apply(queued->asked.what)) {
      done = engine_->work(*options_.room, queued->asked, true);
      done.outcome = Outcome::kAborted;
    }
    const SlotId slot = queued->slot;
    queue_.erase(queued);
    options_.deliver(slot, done);
    run_next();
    return;
  }
  end_generation(effect.op, Outcome::kAborted);
}

// ---- Generations ----

std::uint64_t RealCompute::tokens_left(const Generation& generation) const {
  return node::tokens_of_sample(options_.room->scenario.rollout, options_.seed, generation.asked) - generation.produced;
}

std::uint64_t RealCompute::tokens_so_far(const Generation& generation) const {
  if (generation.parked) return 0;
  const auto ns = static_cast<std::uint64_t>((loop_.now() - generation.started).ns);
  const std::uint64_t made = ns * options_.room->scenario.rollout.tokens_per_second / 1'000'000'000U;
  return std::min(made, tokens_left(generation));
}

void RealCompute::begin(Generation& generation) {
  generation.started = loop_.now();
  generation.parked = false;
  generation.mixed = false;
  const std::uint64_t rate = options_.room->scenario.rollout.tokens_per_second;
  const std::uint64_t ns = (tokens_left(generation) * 1'000'000'000U + rate - 1) / rate;
  const OpId op = generation.asked.op;
  generation.timer = loop_.arm(Duration{static_cast<std::int64_t>(ns)}, [this, op] {
    end_generation(op, options_.fails(ComputeKind::kGenerate) ? Outcome::kPeerGone : Outcome::kOk);
  });
}

port::ComputeDone RealCompute::generated(const Generation& generation, Outcome outcome) const {
  port::ComputeDone done{generation.asked.op, ComputeKind::kGenerate, outcome, 0, tokens_so_far(generation), 0, {}};
  if (engine_) done.digest = engine_->held();
  if (generation.mixed) done.digest = chain_digest(done.digest, {1, 1});
  if (outcome == Outcome::kPeerGone) done.count = 0;
  return done;
}

void RealCompute::end_generation(OpId op, Outcome outcome) {
  const auto place = std::ranges::find_if(generations_, [&](const Generation& one) { return one.asked.op == op; });
  if (place == generations_.end()) return;
  port::ComputeDone done = generated(*place, outcome);
  if (outcome == Outcome::kOk) done.count = tokens_left(*place);  // The timer may come a little early.
  const SlotId slot = place->slot;
  loop_.cancel(place->timer);
  generations_.erase(place);
  options_.deliver(slot, done);
}

void RealCompute::freeze(SlotId /*slot*/, const port::FreezeCompute& effect) {
  std::vector<std::pair<SlotId, port::ComputeDone>> closed;
  for (Generation& generation : generations_) {
    if (generation.parked == effect.frozen) continue;
    if (!effect.frozen) {
      begin(generation);
      continue;
    }
    loop_.cancel(generation.timer);
    port::ComputeDone done = generated(generation, Outcome::kOk);
    done.total = 1;  // More follows.
    generation.produced += done.count;
    generation.parked = true;
    generation.mixed = false;
    closed.emplace_back(generation.slot, done);
  }
  for (const auto& [slot, done] : closed) options_.deliver(slot, done);
}

// A write begins or ends: whatever is decoded now is made of no version.
void RealCompute::weights_changed() {
  for (Generation& generation : generations_) generation.mixed = generation.mixed || !generation.parked;
}

}  // namespace areal::host
