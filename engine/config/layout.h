// How a model is spread over ranks: reads backend strings ("sglang:d2t4p1", "megatron:(attn:d2p1t4|ffn:d1p1e8)") and
// allocation modes ("sglang[r]:d2+fsdp[a]:d4|fsdp[c]:d4").
//
// Dimensions: d data, t tensor, p pipeline, c context, e expert. Blanks are ignored, sizes are positive without leading
// zeros, and of a repeated dimension the last one counts. '+' separates components, '|' puts components on the same
// GPUs and binds tighter. Plain values, safe to share between threads.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace areal::config {

enum class Backend : std::uint8_t { kSglang, kVllm, kFsdp, kMegatron };

constexpr std::array<std::string_view, 4> enum_names(Backend /*tag*/) { return {"sglang", "vllm", "fsdp", "megatron"}; }

constexpr bool is_inference(Backend backend) { return backend == Backend::kSglang || backend == Backend::kVllm; }

// Sizes of the parallel dimensions. Attention uses dp x tp x pp x cp ranks; experts use edp x etp x ep x pp, the same
// number of ranks counted in another way.
struct ParallelStrategy {
  std::uint32_t dp = 1;
  std::uint32_t tp = 1;
  std::uint32_t pp = 1;
  std::uint32_t cp = 1;
  std::uint32_t ep = 1;
  std::uint32_t etp = 1;

  [[nodiscard]] constexpr std::uint32_t world_size() const { return dp * tp * pp * cp; }
  // Data-parallel copies of an expert; without expert sizes the layout counts as dense, and this is dp.
  // REQUIRES: check_strategy() accepted this.
  [[nodiscard]] constexpr std::uint32_t edp() const {
    return ep == 1 && etp == 1 ? dp : world_size() / (pp * etp * ep);
  }
  constexpr bool operator==(const ParallelStrategy&) const = default;
};

// "Parallel(tp=4,pp=1,dp=2,ep=8)".
std::string to_text(const ParallelStrategy& strategy);
// Refuses sizes of 0 and experts that do not divide the world.
Status check_strategy(const ParallelStrategy& strategy);

// Virtual pipeline stages a rank holds: 0 means 1. More than one needs a pipeline.
Result<std::uint32_t> check_virtual_stages(const ParallelStrategy& strategy, std::uint32_t virtual_stages);

enum class Placement : std::uint8_t { kSeparation, kColocation };

constexpr std::array<std::string_view, 2> enum_names(Placement /*tag*/) { return {"separation", "colocation"}; }

// One component of an allocation.
struct ModelAllocation {
  Backend backend = Backend::kSglang;
  std::string name;  // Empty if the component has none.
  ParallelStrategy parallel;
  Placement placement = Placement::kSeparation;
  std::string target;  // Colocation: the component whose GPUs are shared.

  // GPUs of its own: 0 if it shares those of `target`.
  [[nodiscard]] std::uint32_t world_size() const {
    return placement == Placement::kColocation ? 0 : parallel.world_size();
  }
};

// "sglang(rollout):d4t2".
std::string to_text(const ModelAllocation& allocation);

// Reads one component. A name given here wins over the one in brackets. The error names the column, counted from 1, and
// what would be right.
Result<ModelAllocation> parse_allocation(std::string_view text, std::string_view name = {});

enum class AllocationType : std::uint8_t { kColocate, kDecoupledTrain, kServerOnly };

constexpr std::array<std::string_view, 3> enum_names(AllocationType /*tag*/) {
  return {"COLOCATE", "DECOUPLED_TRAIN", "LLM_SERVER_ONLY"};
}

// All components of one string. The accessors refuse where the string leaves the answer open.
struct AllocationMode {
  std::vector<ModelAllocation> allocations;

  [[nodiscard]] std::uint32_t world_size() const;
  [[nodiscard]] Result<AllocationType> type() const;
  // The one inference (training) component, or null if there is none. `property` is what the caller asked for: it
  // appears in the error.
  [[nodiscard]] Result<const ModelAllocation*> generation(std::string_view property = "gen") const;
  [[nodiscard]] Result<const ModelAllocation*> training(std::string_view property = "train") const;
  // GPUs of one inference server: tensor x pipeline.
  [[nodiscard]] Result<std::uint32_t> generation_instance_size() const;
};

Result<AllocationMode> parse_allocation_mode(std::string_view text);

}  // namespace areal::config
