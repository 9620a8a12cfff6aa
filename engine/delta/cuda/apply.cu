// Kernels over lists of entries: each warp takes rows of 32 that follow each other, so that neighbours in a sorted list
// are read or written together.
#include <cuda_runtime.h>

#include "engine/delta/bf16.h"
#include "engine/delta/cuda/apply.h"
#include "engine/delta/cuda/chunk_walk.cuh"

namespace areal::delta::cuda {
namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kReadRows = 8;  // Of a warp at once, where entries are read at their places.
// Entries that are written are better few at once: their front moves through the weights in a narrow band, and what the
// cache writes back falls into open rows of memory more often. Shared memory that nobody uses keeps all but four blocks
// away from a multiprocessor.
constexpr std::uint32_t kWriteRows = 1;
constexpr std::uint32_t kNarrowBytes = 48 << 10;

template <class Index>
__device__ const Index* indices_of(const PatchList& list) {
  if constexpr (sizeof(Index) == 4) return list.indices32;
  if constexpr (sizeof(Index) == 8) return list.indices64;
}

// Calls act(entry number, tensor, index, value) for each entry. All of a warp's indices are loaded first, and its
// values if `kHasValues`: behind a store, which might have changed them, each load would wait for the one before.
template <class Index, std::uint32_t kRows, bool kHasValues, class Act>
__device__ void for_entries(const PatchList& list, const Act& act) {
  constexpr std::uint32_t kWarpEntries = kRows * kLanes;
  const Index* indices = indices_of<Index>(list);
  constexpr std::uint64_t kBlockEntries = std::uint64_t{kThreads} * kRows;
  const std::uint64_t total = min(list.offsets[list.tensors], list.most);
  const std::uint32_t lane = threadIdx.x % kLanes;
  // Blocks start in order: each takes a run of entries, so that those under way are near each other.
  const std::uint64_t run = (total / (gridDim.x * kBlockEntries) + 1) * kBlockEntries;
  const std::uint64_t end_of_run = min(total, (blockIdx.x + 1) * run);
  std::uint64_t start = blockIdx.x * run + threadIdx.x / kLanes * kWarpEntries;
  for (; start < end_of_run; start += kBlockEntries) {
    Index loaded[kRows];
    std::uint16_t values[kRows];
#pragma unroll
    for (std::uint32_t row = 0; row < kRows; ++row) {
      const std::uint64_t entry = start + row * kLanes + lane;
      loaded[row] = entry < total ? __ldcs(indices + entry) : Index{0};
      values[row] = kHasValues && entry < total ? __ldcs(list.values + entry) : std::uint16_t{0};
    }
    std::uint32_t tensor = last_at_most(start, list.tensors, [&](std::uint32_t t) { return list.offsets[t]; });
    std::uint64_t end = list.offsets[tensor + 1];
#pragma unroll
    for (std::uint32_t row = 0; row < kRows; ++row) {
      const std::uint64_t entry = start + row * kLanes + lane;
      if (entry >= total) continue;
      while (entry >= end) end = list.offsets[++tensor + 1];
      act(entry, tensor, loaded[row], values[row]);
    }
  }
}

// Once a launch: entries that the lists have no room for.
__device__ void refuse_beyond(const PatchList& list, std::uint64_t* refused) {
  const std::uint64_t entries = list.offsets[list.tensors];
  if (blockIdx.x == 0 && threadIdx.x == 0 && entries > list.most) add_to(refused, entries - list.most);
}

template <class Index>
__global__ void __launch_bounds__(kThreads)
    apply_kernel(const ApplyTarget* targets, const __grid_constant__ PatchList list, std::uint64_t* refused) {
  refuse_beyond(list, refused);
  std::uint32_t target_of = 0;
  ApplyTarget target = targets[0];
  for_entries<Index, kWriteRows, true>(
      list, [&](std::uint64_t /*entry*/, std::uint32_t tensor, Index index, std::uint16_t value) {
        if (tensor != target_of) target = targets[target_of = tensor];
        if (static_cast<std::uint64_t>(index) < target.elements) {
          target.weights[index] = value;
        } else {
          add_to(refused, 1);
        }
      });
}

template <class Index>
__global__ void __launch_bounds__(kThreads)
    refused_kernel(const ApplyTarget* targets, const __grid_constant__ PatchList list, std::uint64_t* refused) {
  refuse_beyond(list, refused);
  const Index* indices = indices_of<Index>(list);
  for_entries<Index, kReadRows, false>(
      list, [&](std::uint64_t entry, std::uint32_t tensor, Index index, std::uint16_t /*value*/) {
        const bool is_first = entry == list.offsets[tensor];
        const bool ascends = is_first || indices[entry - 1] < index;
        if (static_cast<std::uint64_t>(index) >= targets[tensor].elements || !ascends) {
          add_to(refused, 1);
        }
      });
}

template <class Index>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(const GatherSource* sources, const __grid_constant__ PatchList list, std::uint16_t* values,
                  std::uint64_t* refused) {
  refuse_beyond(list, refused);
  for_entries<Index, kReadRows, false>(
      list, [&](std::uint64_t entry, std::uint32_t tensor, Index index, std::uint16_t /*value*/) {
        const GatherSource source = sources[tensor];
        std::uint16_t value = 0;
        if (static_cast<std::uint64_t>(index) < source.elements) {
          value = source.bf16 != nullptr ? source.bf16[index] : to_bf16(source.weights[index]);
        } else {
          add_to(refused, 1);
        }
        values[entry] = value;
      });
}

// Units of 8 elements where both sides are aligned alike, single elements at the ends and elsewhere.
__device__ void copy_piece(const std::uint16_t* source, std::uint16_t* target, std::uint32_t elements) {
  const auto place = reinterpret_cast<std::uint64_t>(target);
  const bool is_alike = reinterpret_cast<std::uint64_t>(source) % 16 == place % 16;
  const auto ahead = static_cast<std::uint32_t>((16 - place % 16) % 16 / 2);
  const std::uint32_t head = is_alike ? min(elements, ahead) : elements;
  const std::uint32_t units = (elements - head) / 8;
  const auto* from = reinterpret_cast<const uint4*>(source + head);
  auto* to = reinterpret_cast<uint4*>(target + head);
  for_units<kThreads>(from, units, [&](std::uint32_t i, const uint4& unit) { __stcs(to + i, unit); });
  for (std::uint32_t i = threadIdx.x; i < head; i += kThreads) target[i] = source[i];
  for (std::uint32_t i = head + units * 8 + threadIdx.x; i < elements; i += kThreads) target[i] = source[i];
}

__global__ void __launch_bounds__(kThreads)
    copy_kernel(const DenseCopy* copies, std::uint32_t count, std::uint64_t chunks) {
  for_chunks(copies, count, chunks,
             [&](const DenseCopy& copy, std::uint32_t /*which*/, std::uint64_t first, std::uint32_t elements) {
               copy_piece(copy.source + first, copy.target + first, elements);
             });
}

// Up to 512 for each multiprocessor: those without entries end at once.
std::uint32_t blocks_of(const PatchList& list, std::uint32_t rows) {
  return blocks_for(list.most, std::uint64_t{kThreads} * rows, 512);
}

Status check_list(const PatchList& list, const void* tensors, const std::uint64_t* refused, bool has_values) {
  if (list.offsets == nullptr) return Error{Errc::kInvalid, "a list without offsets"};
  if (tensors == nullptr || refused == nullptr) {
    return Error{Errc::kInvalid, "tensors, and a place to count what is refused, please"};
  }
  if (list.most == 0) return Unit{};
  if ((list.indices32 != nullptr) == (list.indices64 != nullptr)) {
    return Error{Errc::kInvalid, "one list of indices, please"};
  }
  if (!has_values) return Error{Errc::kInvalid, "indices without values"};
  return Unit{};
}

}  // namespace

Status apply_sparse(const ApplyTarget* targets, const PatchList& patch, std::uint64_t* refused, Stream stream) {
  if (patch.tensors == 0) return Unit{};
  AREAL_TRY(check_list(patch, targets, refused, patch.values != nullptr));
  const std::uint32_t blocks = blocks_of(patch, kWriteRows);
  if (patch.indices32 != nullptr) {
    apply_kernel<std::int32_t><<<blocks, kThreads, kNarrowBytes, stream>>>(targets, patch, refused);
  } else {
    apply_kernel<std::int64_t><<<blocks, kThreads, kNarrowBytes, stream>>>(targets, patch, refused);
  }
  return last_error("apply");
}

Status count_refused(const ApplyTarget* targets, const PatchList& patch, std::uint64_t* refused, Stream stream) {
  if (patch.tensors == 0) return Unit{};
  AREAL_TRY(check_list(patch, targets, refused, true));
  const std::uint32_t blocks = blocks_of(patch, kReadRows);
  if (patch.indices32 != nullptr) {
    refused_kernel<std::int32_t><<<blocks, kThreads, 0, stream>>>(targets, patch, refused);
  } else {
    refused_kernel<std::int64_t><<<blocks, kThreads, 0, stream>>>(targets, patch, refused);
  }
  return last_error("check of a patch");
}

Status copy_dense(const DenseCopy* copies, std::uint32_t count, std::uint64_t chunks, Stream stream) {
  if (chunks == 0) return Unit{};
  copy_kernel<<<blocks_for(chunks, 1), kThreads, 0, stream>>>(copies, count, chunks);
  return last_error("dense copy");
}

Status gather_values(const GatherSource* sources, const PatchList& list, std::uint16_t* values, std::uint64_t* refused,
                     Stream stream) {
  if (list.tensors == 0) return Unit{};
  AREAL_TRY(check_list(list, sources, refused, values != nullptr));
  const std::uint32_t blocks = blocks_of(list, kReadRows);
  if (list.indices32 != nullptr) {
    gather_kernel<std::int32_t><<<blocks, kThreads, 0, stream>>>(sources, list, values, refused);
  } else {
    gather_kernel<std::int64_t><<<blocks, kThreads, 0, stream>>>(sources, list, values, refused);
  }
  return last_error("gather");
}

}  // namespace areal::delta::cuda
