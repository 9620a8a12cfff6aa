// The passes of the detector. None waits for another block: what one needs of another, the launch before has written.
//
//   look:   a warp a tile: reads all of it once; one bit an element, the tile's count, added to its group's count
//   place:  a block a group: the counts before the group, then those of its tiles one after the other
//   write:  a warp a tile: bits -> positions in shared memory -> indices and values; reads weights that changed alone
//
// Sums are of whole numbers, so their order does not matter, and each entry's place follows from the counts before it.
#pragma once
#include <cstdint>

#include "engine/delta/cuda/chunk_walk.cuh"
#include "engine/delta/cuda/detect_kinds.cuh"

namespace areal::delta::cuda {

inline constexpr std::uint32_t kTileElements = 2048;
inline constexpr std::uint32_t kTileWords = kTileElements / 32;
inline constexpr std::uint32_t kTileWarps = 8;  // Of a block: a tile each.
inline constexpr std::uint32_t kGroupsMost = 1024;
inline constexpr std::uint32_t kPlaceThreads = 512;
static_assert(kTileWords == 2 * kLanes, "each lane has two words");

struct DetectArguments {
  const TileTensor* tensors;
  const std::uint32_t* first_tiles;  // tensor_count + 1.
  const ChangeRule* rules;
  std::uint64_t* groups;  // Changes of each group of tiles; zero when the launch begins.
  std::uint64_t* places;  // Of each tile: changes before it.
  std::uint32_t* counts;  // Of each tile.
  std::uint32_t* marks;   // kTileWords of each tile: bit i of word w is element 32 w + i.
  std::int32_t* indices32;
  std::int64_t* indices64;
  std::uint16_t* values;
  std::uint64_t* offsets;
  std::uint64_t capacity;
  std::uint32_t tensor_count;
  std::uint32_t tile_count;
  std::uint32_t group_tiles;  // Tiles of a group.
};

// A tile as a warp sees it.
struct Tile {
  std::uint32_t number;
  std::uint32_t tensor;
  std::uint64_t first;  // Index of its first element in its tensor.
};

__device__ inline Tile tile_at(const DetectArguments& arguments, std::uint32_t number) {
  const std::uint32_t tensor = last_at_most(number, arguments.tensor_count,
                                            [&](std::uint32_t t) -> std::uint64_t { return arguments.first_tiles[t]; });
  return {number, tensor, std::uint64_t{number - arguments.first_tiles[tensor]} * kTileElements};
}

__device__ inline std::uint32_t tile_of_warp() { return blockIdx.x * kTileWarps + threadIdx.x / kLanes; }

// Rows 0 .. 31 of 32 elements from `first` on: lane r gets the bits of row r. `left`: elements of the tensor from
// there.
template <class Kind>
__device__ std::uint32_t look_at_rows(const TileTensor& tensor, const ChangeRule& rule, std::uint64_t first,
                                      std::uint64_t left) {
  const std::uint32_t lane = threadIdx.x % kLanes;
  const std::uint32_t mine =
      left > lane ? static_cast<std::uint32_t>(min((left - lane + kLanes - 1) / kLanes, std::uint64_t{kLanes})) : 0;
  std::uint32_t changed = 0;
  std::uint32_t unsure = 0;
#pragma unroll 1
  for (std::uint32_t row = 0; row < kLanes; row += Kind::kRows) {
    const RowBits bits = Kind::look(tensor, rule, first + row * kLanes + lane, mine > row ? mine - row : 0);
    changed |= bits.changed << row;
    unsure |= bits.unsure << row;
  }
  const std::uint32_t inside = mine == kLanes ? 0xFFFFFFFFU : (1U << mine) - 1U;
  changed &= inside;
  unsure &= inside;
  // Lanes that have different rows to decide do it together.
  while (Kind::kHasRule && __any_sync(kWholeWarp, unsure != 0)) {
    if (unsure != 0) {
      const std::uint32_t row = static_cast<std::uint32_t>(__ffs(static_cast<int>(unsure))) - 1;
      unsure &= unsure - 1;
      if (Kind::decide(tensor, rule, first + row * kLanes + lane)) changed |= 1U << row;
    }
    __syncwarp();
  }
  std::uint32_t word = 0;
#pragma unroll
  for (std::uint32_t row = 0; row < kLanes; ++row) {
    const std::uint32_t row_bits = __ballot_sync(kWholeWarp, ((changed >> row) & 1U) != 0);
    if (lane == row) word = row_bits;
  }
  return word;
}

template <class Kind>
__global__ void __launch_bounds__(kTileWarps* kLanes, Kind::kBlocks)
    look_kernel(const __grid_constant__ DetectArguments arguments) {
  const std::uint32_t number = tile_of_warp();
  if (number >= arguments.tile_count) return;
  const std::uint32_t lane = threadIdx.x % kLanes;
  const Tile tile = tile_at(arguments, number);
  const TileTensor tensor = arguments.tensors[tile.tensor];
  const ChangeRule& rule = arguments.rules[tensor.rule];  // Of a snapshot nobody reads it.
  std::uint32_t count = 0;
#pragma unroll 1
  for (std::uint32_t half = 0; half < kTileWords; half += kLanes) {
    const std::uint64_t first = tile.first + half * 32;
    const std::uint64_t left = tensor.elements > first ? tensor.elements - first : 0;
    const std::uint32_t word = look_at_rows<Kind>(tensor, rule, first, left);
    arguments.marks[std::uint64_t{number} * kTileWords + half + lane] = word;
    count += static_cast<std::uint32_t>(__popc(word));
  }
  count = __reduce_add_sync(kWholeWarp, count);
  if (lane != 0) return;
  arguments.counts[number] = count;
  if (count == 0) return;
  atomicAdd(reinterpret_cast<unsigned long long*>(&arguments.groups[number / arguments.group_tiles]), count);
}

// Sum of the lanes below; the last lane has the whole but its own.
__device__ inline std::uint32_t sum_below(std::uint32_t mine) {
  const std::uint32_t lane = threadIdx.x % kLanes;
  std::uint32_t sum = mine;
#pragma unroll
  for (std::uint32_t step = 1; step < kLanes; step *= 2) {
    const std::uint32_t other = __shfl_up_sync(kWholeWarp, sum, step);
    if (lane >= step) sum += other;
  }
  return sum - mine;
}

static __global__ void __launch_bounds__(kPlaceThreads)
    place_kernel(const __grid_constant__ DetectArguments arguments) {
  constexpr std::uint32_t kWarps = kPlaceThreads / kLanes;
  __shared__ std::uint64_t start;
  __shared__ std::uint32_t warps[kWarps];
  const std::uint32_t warp = threadIdx.x / kLanes;
  const std::uint32_t lane = threadIdx.x % kLanes;
  std::uint64_t before = 0;
  for (std::uint32_t group = threadIdx.x; group < blockIdx.x; group += kPlaceThreads) before += arguments.groups[group];
  before = block_sum(before);
  if (threadIdx.x == 0) start = before;
  __syncthreads();
  std::uint64_t base = start;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * arguments.group_tiles;
  const std::uint64_t end = min(first + arguments.group_tiles, std::uint64_t{arguments.tile_count});
  for (std::uint64_t at = first; at < end; at += kPlaceThreads) {
    const std::uint64_t tile = at + threadIdx.x;
    const std::uint32_t count = tile < end ? arguments.counts[tile] : 0;
    const std::uint32_t below = sum_below(count);
    __syncthreads();  // The round before has been read.
    if (lane == kLanes - 1) warps[warp] = below + count;
    __syncthreads();
    const std::uint32_t of_warp = lane < kWarps ? warps[lane] : 0;
    const std::uint32_t of_warps_before = __reduce_add_sync(kWholeWarp, lane < warp ? of_warp : 0);
    if (tile < end) arguments.places[tile] = base + of_warps_before + below;
    base += __reduce_add_sync(kWholeWarp, of_warp);
  }
}

// A tensor's first tile knows where the tensor begins, and the empty ones in front of it; the last tile knows the end.
__device__ inline void write_offsets(const DetectArguments& arguments, const Tile& tile, std::uint64_t place,
                                     std::uint32_t changed) {
  if (tile.first == 0) {
    std::uint32_t tensor = tile.tensor;
    arguments.offsets[tensor] = place;
    while (tensor > 0 && arguments.first_tiles[tensor - 1] == tile.number) arguments.offsets[--tensor] = place;
  }
  if (tile.number + 1 == arguments.tile_count) {
    for (std::uint32_t t = tile.tensor + 1; t <= arguments.tensor_count; ++t) arguments.offsets[t] = place + changed;
  }
}

// Positions of the set bits of this lane's two words, from `at` on.
__device__ inline void list_bits(uint2 words, std::uint32_t at, std::uint16_t* positions) {
  const std::uint32_t lane = threadIdx.x % kLanes;
#pragma unroll
  for (std::uint32_t w = 0; w < 2; ++w) {
    for (std::uint32_t bits = w == 0 ? words.x : words.y; bits != 0; bits &= bits - 1) {
      positions[at++] = static_cast<std::uint16_t>((lane * 2 + w) * 32 + __ffs(static_cast<int>(bits)) - 1);
    }
  }
}

template <class Kind>
__global__ void __launch_bounds__(kTileWarps* kLanes) write_kernel(const __grid_constant__ DetectArguments arguments) {
  __shared__ std::uint16_t positions_of[kTileWarps][kTileElements];
  const std::uint32_t number = tile_of_warp();
  if (number >= arguments.tile_count) return;
  const std::uint32_t lane = threadIdx.x % kLanes;
  std::uint16_t* positions = positions_of[threadIdx.x / kLanes];
  const uint2 words = __ldcs(reinterpret_cast<const uint2*>(arguments.marks) + std::uint64_t{number} * kLanes + lane);
  const std::uint64_t place = arguments.places[number];
  const Tile tile = tile_at(arguments, number);
  const auto mine = static_cast<std::uint32_t>(__popc(words.x) + __popc(words.y));
  const std::uint32_t below = sum_below(mine);
  const std::uint32_t changed = __shfl_sync(kWholeWarp, below + mine, kLanes - 1);
  list_bits(words, below, positions);
  if (lane == 0) write_offsets(arguments, tile, place, changed);
  __syncwarp();
  if (changed == 0 || place >= arguments.capacity) return;
  const TileTensor tensor = arguments.tensors[tile.tensor];
  const auto fits = static_cast<std::uint32_t>(min(std::uint64_t{changed}, arguments.capacity - place));
  // Loads first: behind a store, which might have changed the weights, each would wait for the one before.
  constexpr std::uint32_t kAtOnce = 4;
  for (std::uint32_t start = lane; start < fits; start += kAtOnce * kLanes) {
    std::uint16_t values[kAtOnce];
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k) {
      const std::uint32_t i = start + k * kLanes;
      values[k] = i < fits ? Kind::value(tensor, tile.first + positions[i]) : std::uint16_t{0};
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k) {
      const std::uint32_t i = start + k * kLanes;
      if (i >= fits) continue;
      const std::uint64_t index = tile.first + positions[i];
      arguments.values[place + i] = values[k];
      if (arguments.indices32 != nullptr) arguments.indices32[place + i] = static_cast<std::int32_t>(index);
      if (arguments.indices64 != nullptr) arguments.indices64[place + i] = static_cast<std::int64_t>(index);
    }
  }
}

}  // namespace areal::delta::cuda
