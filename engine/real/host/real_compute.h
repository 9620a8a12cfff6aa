// The compute engine of a real process without a GPU: the small live model's arithmetic, at the pace of the scenario.
//
// Operations run one after the other, but for generations, which run beside everything. Loading and gradients take as
// long as the scenario says; the rest takes what it takes. Checkpoints are files. Called by the loop only.
#pragma once
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/node/tiny_rank.h"
#include "engine/port/compute.h"
#include "engine/real/host/loop.h"
#include "engine/real/host/worker.h"

namespace areal::host {

struct RealComputeOptions {
  const node::RoomPlan* room = nullptr;
  NodeId node{};
  std::uint64_t seed = 0;             // Of the run.
  std::filesystem::path checkpoints;  // Folder.
  // Whether the operation that ends now fails, by a fault.
  std::function<bool(port::ComputeKind)> fails;
  // Where results go.
  std::function<void(SlotId, const port::ComputeDone&)> deliver;
};

class RealCompute final : public port::Compute {
 public:
  RealCompute(Loop& loop, RealComputeOptions options);
  ~RealCompute() override;

  void start(SlotId slot, const port::StartCompute& effect) override;
  void stop(SlotId slot, const port::StopCompute& effect) override;
  void freeze(SlotId slot, const port::FreezeCompute& effect) override;

  // Of a trainer, of an engine's rank; null for other roles.
  node::TinyTrainRank* train_rank() { return trainer_ ? &*trainer_ : nullptr; }
  node::TinyEngineRank* engine_rank() { return engine_ ? &*engine_ : nullptr; }

 private:
  struct Generation {
    SlotId slot{};
    port::StartCompute asked;
    std::uint64_t produced = 0;  // Tokens of closed segments.
    Instant started{};
    bool parked = false;
    bool mixed = false;  // Weights changed under it.
    LoopTimer timer{};
  };
  struct Queued {
    SlotId slot{};
    port::StartCompute asked;
    bool running = false;
    LoopTimer timer{};
  };

  void run_next();
  void finish(bool cut_short);
  void save_or_load(const Queued& queued);
  void end_first(const port::ComputeDone& done);
  [[nodiscard]] Duration duration_of(const port::StartCompute& asked) const;

  [[nodiscard]] std::uint64_t tokens_left(const Generation& generation) const;
  [[nodiscard]] std::uint64_t tokens_so_far(const Generation& generation) const;
  void begin(Generation& generation);
  void end_generation(OpId op, port::Outcome outcome);
  [[nodiscard]] port::ComputeDone generated(const Generation& generation, port::Outcome outcome) const;
  void weights_changed();

  Loop& loop_;
  RealComputeOptions options_;
  const node::RoomNode& place_;
  std::optional<node::TinyTrainRank> trainer_;
  std::optional<node::TinyEngineRank> engine_;
  std::deque<Queued> queue_;
  std::vector<Generation> generations_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace areal::host
