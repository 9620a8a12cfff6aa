// Finds the changed elements of many tensors at once, and packs them in order.
//
// One pass over what the optimizer holds (12 bytes a weight), or over the weights and a copy of what was sent (4 bytes
// a weight), gives for all tensors one after the other the ascending indices of changed elements, each counted from the
// start of its tensor, and their bf16 bits. Where a tensor's part begins stands in device memory: nothing waits for the
// host. The result depends on the input alone, not on the device or on how blocks were scheduled.
//
// Three launches and a small memset, however many tensors: look (all bytes once; notes and count of each tile), place
// (where each tile's changes go), write (notes to indices and values). No block waits for another. The table holds what
// they hand on: 1,036 bytes for each 2,048 elements.
//
// Functions may be called from any host thread; calls that share a workspace must be in one stream's order. Device
// pointers need their element's alignment and no more. A launch can be captured into a graph and replayed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/result.h"
#include "engine/delta/cuda/change_rule.h"
#include "engine/delta/cuda/stream.h"
#include "engine/delta/cuda/tile_plan.h"

namespace areal::delta::cuda {

// What one optimizer shard holds after the step; device pointers to `elements` each.
struct OptimizerTensor {
  const float* weights = nullptr;
  const float* exp_avg = nullptr;
  const float* exp_avg_sq = nullptr;
  std::uint64_t elements = 0;
  std::uint32_t rule = 0;  // Index into the rules of the launch.
};

// bf16 bits now, and as they were sent last; device pointers.
struct SnapshotTensor {
  const std::uint16_t* weights = nullptr;
  const std::uint16_t* sent = nullptr;
  std::uint64_t elements = 0;
};

// Where the result goes; device pointers.
struct ChangeOutput {
  std::int32_t* indices32 = nullptr;  // One of the two; indices32 only if all tensors have fewer than 2^31 elements.
  std::int64_t* indices64 = nullptr;
  std::uint16_t* values = nullptr;
  // Entries that fit into both lists. What is beyond is counted, and not written.
  std::uint64_t capacity = 0;
  // One for each tensor, and the total: tensor t has entries offsets[t] .. offsets[t + 1] - 1.
  std::uint64_t* offsets = nullptr;
};

// Tensors as a launch wants them, in device memory. Made once as long as pointers and sizes stay; move-only.
class DetectTable {
 public:
  // Allocates device memory and copies the table there; waits for all work of the device. Refuses null pointers of
  // tensors that are not empty, pointers without their element's alignment, and what plan_tiles() refuses.
  static Result<DetectTable> make(std::span<const OptimizerTensor> tensors);
  static Result<DetectTable> make(std::span<const SnapshotTensor> tensors);

  DetectTable(DetectTable&& other) noexcept;
  DetectTable& operator=(DetectTable&& other) noexcept;
  DetectTable(const DetectTable&) = delete;
  DetectTable& operator=(const DetectTable&) = delete;
  ~DetectTable();

  [[nodiscard]] const TilePlan& plan() const { return plan_; }
  [[nodiscard]] std::uint64_t largest_tensor() const { return largest_tensor_; }

 private:
  friend struct DetectTableAccess;
  DetectTable() = default;

  TilePlan plan_;
  bool is_snapshot_ = false;
  std::uint64_t largest_tensor_ = 0;
  std::uint64_t rules_ = 0;      // At least as many must be given to a launch.
  void* tensors_ = nullptr;      // Device.
  void* first_tiles_ = nullptr;  // Device.
  void* workspace_ = nullptr;    // Device; notes and counts of the launch that runs.
};

// `rules` is a device pointer to `rule_count` rules; it is read by the launch, not by this call. Refuses a table of
// another kind, null or fewer rules than the tensors name, int32 indices for a tensor that is too large, and missing
// outputs.
Status detect_changes(const DetectTable& table, const ChangeRule* rules, std::uint32_t rule_count,
                      const ChangeOutput& output, Stream stream);
// Bits are compared: +0 and -0 differ, a NaN equals itself.
Status compare_snapshot(const DetectTable& table, const ChangeOutput& output, Stream stream);

}  // namespace areal::delta::cuda
