// Tables in device memory, and launches of the detector.
#include <cuda_runtime.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/delta/cuda/detect.h"
#include "engine/delta/cuda/detect_passes.cuh"

namespace areal::delta::cuda {

// Gives the functions here what DetectTable keeps to itself.
struct DetectTableAccess {
  static DetectTable create() { return {}; }
  static TilePlan& plan(DetectTable& table) { return table.plan_; }
  static Status fill(DetectTable& table, std::span<const TileTensor> tensors, bool is_snapshot);
  static Status launch(const DetectTable& table, const ChangeRule* rules, const ChangeOutput& output, Stream stream);
  static bool is_snapshot(const DetectTable& table) { return table.is_snapshot_; }
  static std::uint64_t rules(const DetectTable& table) { return table.rules_; }
};

namespace {

// What a table's workspace holds, in this order; sizes in bytes, each a multiple of 8.
struct Workspace {
  explicit Workspace(std::uint64_t tiles)
      : places(kGroupsMost * sizeof(std::uint64_t)),
        counts(places + tiles * sizeof(std::uint64_t)),
        notes(counts + (tiles + 1) / 2 * 2 * sizeof(std::uint32_t)),
        all(notes + tiles * kNotesMost * sizeof(std::uint32_t)) {}
  std::size_t places;
  std::size_t counts;
  std::size_t notes;
  std::size_t all;
};

template <class T>
bool is_usable(const T* pointer) {
  // det-ok: address-in-text: alignment only
  return pointer != nullptr && reinterpret_cast<std::uintptr_t>(pointer) % sizeof(T) == 0;
}

template <class Kind>
Status launch_kind(const DetectArguments& arguments, Stream stream) {
  const std::uint32_t blocks = (arguments.tile_count - 1) / kTileWarps + 1;
  const std::uint32_t groups = (arguments.tile_count - 1) / arguments.group_tiles + 1;
  cudaMemsetAsync(arguments.groups, 0, groups * sizeof(std::uint64_t), stream);
  look_kernel<Kind><<<blocks, kTileWarps * kLanes, 0, stream>>>(arguments);
  place_kernel<<<groups, kPlaceThreads, 0, stream>>>(arguments);
  write_kernel<Kind><<<blocks, kTileWarps * kLanes, 0, stream>>>(arguments);
  return last_error("detector");
}

Status to_device(void** target, const void* source, std::size_t bytes) {
  if (cudaMalloc(target, std::max<std::size_t>(bytes, 16)) != cudaSuccess) return last_error("detector's table");
  if (bytes > 0) cudaMemcpy(*target, source, bytes, cudaMemcpyHostToDevice);
  return last_error("detector's table");
}

Status check_output(const DetectTable& table, const ChangeOutput& output) {
  const bool has_indices = (output.indices32 != nullptr) != (output.indices64 != nullptr);
  if (output.offsets == nullptr) return Error{Errc::kInvalid, "no place for offsets"};
  if (output.capacity > 0 && (!has_indices || output.values == nullptr)) {
    return Error{Errc::kInvalid, "one list of indices and one of values, please"};
  }
  if (output.indices32 != nullptr && table.largest_tensor() > 0x7FFFFFFFU) {
    return Error{Errc::kInvalid, "int32 indices for a tensor of 2^31 elements and more"};
  }
  return Unit{};
}

}  // namespace

Status DetectTableAccess::fill(DetectTable& table, std::span<const TileTensor> tensors, bool is_snapshot) {
  std::vector<std::uint64_t> sizes;
  for (const TileTensor& tensor : tensors) {
    sizes.push_back(tensor.elements);
    table.largest_tensor_ = std::max(table.largest_tensor_, tensor.elements);
    if (tensor.elements > 0) table.rules_ = std::max(table.rules_, std::uint64_t{tensor.rule} + 1);
  }
  Result<TilePlan> plan = plan_tiles(sizes, kTileElements);
  if (!plan) return std::move(plan).error();
  table.plan_ = std::move(plan).value();
  table.is_snapshot_ = is_snapshot;
  AREAL_TRY(to_device(&table.tensors_, tensors.data(), tensors.size_bytes()));
  AREAL_TRY(to_device(&table.first_tiles_, table.plan_.first_tile.data(),
                      table.plan_.first_tile.size() * sizeof(std::uint32_t)));
  const std::size_t bytes = Workspace(table.plan_.tiles()).all;
  if (cudaMalloc(&table.workspace_, bytes) != cudaSuccess) return last_error("detector's workspace");
  cudaDeviceSynchronize();
  return last_error("detector's workspace");
}

Status DetectTableAccess::launch(const DetectTable& table, const ChangeRule* rules, const ChangeOutput& output,
                                 Stream stream) {
  AREAL_TRY(check_output(table, output));
  if (table.plan_.tiles() == 0) {
    cudaMemsetAsync(output.offsets, 0, (table.plan_.tensors() + 1ULL) * sizeof(std::uint64_t), stream);
    return last_error("detector");
  }
  DetectArguments arguments{};
  arguments.tensors = static_cast<const TileTensor*>(table.tensors_);
  arguments.first_tiles = static_cast<const std::uint32_t*>(table.first_tiles_);
  arguments.rules = rules;
  const Workspace parts(table.plan_.tiles());
  auto* workspace = static_cast<unsigned char*>(table.workspace_);
  arguments.groups = reinterpret_cast<std::uint64_t*>(workspace);
  arguments.places = reinterpret_cast<std::uint64_t*>(workspace + parts.places);
  arguments.counts = reinterpret_cast<std::uint32_t*>(workspace + parts.counts);
  arguments.notes = reinterpret_cast<std::uint32_t*>(workspace + parts.notes);
  arguments.indices32 = output.indices32;
  arguments.indices64 = output.indices64;
  arguments.values = output.values;
  arguments.offsets = output.offsets;
  arguments.capacity = output.capacity;
  arguments.tensor_count = table.plan_.tensors();
  arguments.tile_count = table.plan_.tiles();
  arguments.group_tiles = std::max(kPlaceThreads, (table.plan_.tiles() - 1) / kGroupsMost + 1);
  return table.is_snapshot_ ? launch_kind<SentSnapshot>(arguments, stream)
                            : launch_kind<OptimizerInversion>(arguments, stream);
}

Result<DetectTable> DetectTable::make(std::span<const OptimizerTensor> tensors) {
  std::vector<TileTensor> entries;
  for (const OptimizerTensor& tensor : tensors) {
    const bool is_good = is_usable(tensor.weights) && is_usable(tensor.exp_avg) && is_usable(tensor.exp_avg_sq);
    if (tensor.elements > 0 && !is_good) return Error{Errc::kInvalid, "a null or unaligned pointer"};
    entries.push_back({{tensor.weights, tensor.exp_avg, tensor.exp_avg_sq}, tensor.elements, tensor.rule, 0});
  }
  DetectTable table;
  AREAL_TRY(DetectTableAccess::fill(table, entries, false));
  return Result<DetectTable>(std::move(table));
}

Result<DetectTable> DetectTable::make(std::span<const SnapshotTensor> tensors) {
  std::vector<TileTensor> entries;
  for (const SnapshotTensor& tensor : tensors) {
    const bool is_good = is_usable(tensor.weights) && is_usable(tensor.sent);
    if (tensor.elements > 0 && !is_good) return Error{Errc::kInvalid, "a null or unaligned pointer"};
    entries.push_back({{tensor.weights, tensor.sent, nullptr}, tensor.elements, 0, 0});
  }
  DetectTable table;
  AREAL_TRY(DetectTableAccess::fill(table, entries, true));
  return Result<DetectTable>(std::move(table));
}

DetectTable::DetectTable(DetectTable&& other) noexcept { *this = std::move(other); }

DetectTable& DetectTable::operator=(DetectTable&& other) noexcept {
  std::swap(plan_, other.plan_);
  std::swap(is_snapshot_, other.is_snapshot_);
  std::swap(largest_tensor_, other.largest_tensor_);
  std::swap(rules_, other.rules_);
  std::swap(tensors_, other.tensors_);
  std::swap(first_tiles_, other.first_tiles_);
  std::swap(workspace_, other.workspace_);
  return *this;
}

DetectTable::~DetectTable() {
  cudaFree(tensors_);
  cudaFree(first_tiles_);
  cudaFree(workspace_);
}

Status detect_changes(const DetectTable& table, const ChangeRule* rules, std::uint32_t rule_count,
                      const ChangeOutput& output, Stream stream) {
  if (DetectTableAccess::is_snapshot(table)) return Error{Errc::kInvalid, "a table of snapshots"};
  if (rule_count < DetectTableAccess::rules(table)) {
    return Error{Errc::kInvalid, "a tensor names a rule that is missing"};
  }
  if (rules == nullptr && DetectTableAccess::rules(table) > 0) return Error{Errc::kInvalid, "no rules"};
  return DetectTableAccess::launch(table, rules, output, stream);
}

Status compare_snapshot(const DetectTable& table, const ChangeOutput& output, Stream stream) {
  if (!DetectTableAccess::is_snapshot(table)) return Error{Errc::kInvalid, "not a table of snapshots"};
  return DetectTableAccess::launch(table, nullptr, output, stream);
}

}  // namespace areal::delta::cuda
