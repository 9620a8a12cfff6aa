// A small model on random layouts after one optimizer step, and both ways to find out what the step changed.
#pragma once
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "engine/delta/shard/shard_detect.h"

namespace areal::delta {

// By (index of the engine's parameter, index in the rank's shard): bits that are sent.
using Received = std::map<std::pair<std::uint32_t, std::int32_t>, std::uint32_t>;

// One checkpoint tensor, whole, around the step.
struct Trained {
  std::vector<float> before;
  std::vector<float> after;
  std::vector<float> exp_avg;
  std::vector<float> exp_avg_sq;
};

class TrainedWorld {
 public:
  // Megatron if `fsdp` is null. Layouts that the builders refuse give an error.
  static Result<TrainedWorld> make(const config::ModelSpec& model, const config::ParallelStrategy& train,
                                   const proto::FsdpSizes* fsdp, const config::ParallelStrategy& infer);

  // Random weights, moments and gradients, then step `t`. Some weights are zero, some never had a gradient.
  void train(const AdamWSettings& settings, std::uint64_t t, std::uint64_t seed);

  // Each owner alone. Fails the test if an element arrives twice.
  [[nodiscard]] std::vector<Received> by_shards(const ShardRule& rule, std::span<const OwnerSlice> slices) const;
  // As the reference does it: corrections summed over copies, gathered over tensor ranks, converted, compared, and sent
  // by the transfer plan.
  [[nodiscard]] std::vector<Received> by_reduction() const;
  // What truly changed, by the receivers' shards; aliases left out.
  [[nodiscard]] std::vector<Received> truth() const;

  [[nodiscard]] std::vector<OwnerSlice> slices() const;

  CoreLayout layout;
  proto::GridSet train_grids;
  proto::GridSet infer;
  proto::PlanWorld world;
  bool is_sharded = false;
  std::string_view dense_suffixes = kReferenceDenseSuffixes;
  InversionScalars inversion;
  ProvenStep proven;
  std::vector<Trained> trained;  // By parameter of the model.

 private:
  struct Piece {
    std::vector<float> weights, exp_avg, exp_avg_sq;
    std::vector<std::uint32_t> visible;
  };
  [[nodiscard]] Piece piece_of(const CoreTensor& tensor, std::uint32_t piece) const;
  [[nodiscard]] DType storage_of(const CoreTensor& tensor) const;
  // Masks of the checkpoint tensors inside a core tensor, from its pieces.
  void mask(const CoreTensor& tensor, std::vector<std::vector<std::uint8_t>>& masks) const;
};

std::uint32_t bits_in(float weight, DType dtype);

}  // namespace areal::delta
