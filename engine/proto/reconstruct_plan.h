// Who reduces which parameters with whom, and in which windows: what a training rank must know to invert its last step.
//
// The data-parallel copies of a parameter form a replica group; which of two groups a parameter uses is a function of
// its name alone (INV-DELTA-GROUP-PURE): names with ".experts." use the expert group, everything else the dense one. A
// window is a run of parameters in the model's traversal order whose fp32 corrections fit the window size; boundaries
// are equal on all ranks, so that nobody waits for a window that others cut elsewhere. Source: spec/transfer.md 1.6.
// Values; immutable once built.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/config/model.h"
#include "engine/proto/shard_meta.h"

namespace areal::proto {

enum class ReplicaKind : std::uint8_t { kDense, kExpert };
inline constexpr std::size_t kReplicaKinds = 2;

constexpr ReplicaKind replica_kind(std::string_view name) {
  return name.find(".experts.") == std::string_view::npos ? ReplicaKind::kDense : ReplicaKind::kExpert;
}

// A rank's place among the copies of what it holds.
struct ReplicaPlace {
  std::uint32_t group = 0;  // Counted over all groups of the training world, from 1.
  std::uint32_t rank = 0;
  std::uint32_t world = 1;  // 1: there is nobody to reduce with.
};

// What one rank reduces of one window with one group.
struct WindowShare {
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;  // Of fp32 corrections.
  std::uint64_t hash = 0;   // Of (name, elements) of each parameter, in order.
};

struct ReconstructWindow {
  std::array<WindowShare, kReplicaKinds> shares{};
  [[nodiscard]] std::uint64_t bytes() const { return shares[0].bytes + shares[1].bytes; }
};

struct ReconstructPlan {
  std::array<ReplicaPlace, kReplicaKinds> places{};
  std::vector<ReconstructWindow> windows{};  // At least one.
  std::uint64_t parameters = 0;
  std::uint64_t elements = 0;  // Held by this rank.
};

struct ReconstructPlans {
  std::vector<ReconstructPlan> ranks{};         // By training rank.
  std::vector<std::uint32_t> window_of_name{};  // By index into the model's names; 0 for names that nobody holds.
};

// `train` must be the metas of `model`. window_bytes 0: every parameter is a window of its own.
ReconstructPlans reconstruct_plans(const config::ModelSpec& model, const MetaSet& train, std::uint64_t window_bytes);

}  // namespace areal::proto
