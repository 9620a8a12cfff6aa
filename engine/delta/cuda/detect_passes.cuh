// The passes of the detector. None waits for another block: what one needs of another, the launch before has written.
//
//   look:   a warp a tile: reads all of it once; notes of the tile and its count, which is added to its group's
//   place:  a block a group: the counts before the group, then those of its tiles one after the other
//   write:  a warp a tile: notes -> indices and values
//
// Notes of a tile with at most kNotesMost changes hold position and value of each: weights read again would be read in
// pieces of 64 bytes, most of the tile at 10 %. The tiles under way are more than the cache holds, so values wait in
// shared memory. Of more changes notes hold a bit an element, and the write pass reads the weights that changed.
//
// Sums are of whole numbers, so their order does not matter, and each entry's place follows from the counts before it.
#pragma once
#include <cstdint>

#include "engine/delta/cuda/chunk_walk.cuh"
#include "engine/delta/cuda/detect_kinds.cuh"

namespace areal::delta::cuda {

inline constexpr std::uint32_t kTileElements = 2048;
inline constexpr std::uint32_t kNotesMost = 256;  // Words of a tile's notes. At 10 %, a tile has 205 +- 14 changes.
inline constexpr std::uint32_t kTileWarps = 8;    // Of a block: a tile each.
inline constexpr std::uint32_t kGroupsMost = 1024;
inline constexpr std::uint32_t kPlaceThreads = 512;
static_assert(kTileElements == 2 * kLanes * 32, "each lane has two words of bits");
static_assert(2 * kLanes <= kNotesMost && kTileElements <= 0x10000, "bits and positions fit into notes");

struct DetectArguments {
  const TileTensor* tensors;
  const std::uint32_t* first_tiles;  // tensor_count + 1.
  const ChangeRule* rules;
  std::uint64_t* groups;  // Changes of each group of tiles; zero when the launch begins.
  std::uint64_t* places;  // Of each tile: changes before it.
  std::uint32_t* counts;  // Of each tile.
  // kNotesMost of each tile. Up to that many changes: position << 16 | value of each, ascending; of more: bit i of word
  // w is element 32 w + i.
  std::uint32_t* notes;
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
// there. `pairs`: room for their values.
template <class Kind>
__device__ std::uint32_t look_at_rows(const TileTensor& tensor, const ChangeRule& rule, std::uint64_t first,
                                      std::uint64_t left, std::uint32_t* pairs) {
  const std::uint32_t lane = threadIdx.x % kLanes;
  const std::uint32_t mine =
      left > lane ? static_cast<std::uint32_t>(min((left - lane + kLanes - 1) / kLanes, std::uint64_t{kLanes})) : 0;
  std::uint32_t changed = 0;
  std::uint32_t unsure = 0;
#pragma unroll 1
  for (std::uint32_t row = 0; row < kLanes; row += Kind::kRows) {
    const RowBits bits = Kind::look(tensor, rule, first + row * kLanes + lane, mine > row ? mine - row : 0,
                                    pairs + row / 2 * kLanes + lane);
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

// A tile's changes: lane l has rows l and 32 + l, which are words of 32 elements.
class TileBits {
 public:
  __device__ TileBits(std::uint32_t first, std::uint32_t second) : first_(first), second_(second) {
    const std::uint32_t mine = __popc(first) | __popc(second) << 16;  // A half has at most 1024: no sum overflows.
    below_ = sum_below(mine);
    all_ = __shfl_sync(kWholeWarp, below_ + mine, kLanes - 1);
  }
  [[nodiscard]] __device__ std::uint32_t count() const { return (all_ & 0xFFFFU) + (all_ >> 16); }
  // Calls put(i, position) for the changes of the lane's rows; i counts those of all rows, in ascending order.
  template <class Put>
  __device__ void for_mine(const Put& put) const {
    const std::uint32_t lane = threadIdx.x % kLanes;
    for_bits(first_, below_ & 0xFFFFU, lane * 32, put);
    for_bits(second_, (all_ & 0xFFFFU) + (below_ >> 16), (kLanes + lane) * 32, put);
  }

 private:
  template <class Put>
  static __device__ void for_bits(std::uint32_t word, std::uint32_t i, std::uint32_t position, const Put& put) {
    for (; word != 0; word &= word - 1)
      put(i++, position + static_cast<std::uint32_t>(__ffs(static_cast<int>(word))) - 1);
  }

  std::uint32_t first_;
  std::uint32_t second_;
  std::uint32_t below_;  // Changes of the lanes below, of the first rows and, shifted by 16, of the second ones.
  std::uint32_t all_;    // The same of all lanes.
};

// Calls store(i, load(i)) for i < count. Loads first: behind a store, which might have changed what they load, each
// would wait for the one before.
template <class Load, class Store>
__device__ void load_then_store(std::uint32_t count, const Load& load, const Store& store) {
  constexpr std::uint32_t kAtOnce = 4;
  for (std::uint32_t start = threadIdx.x % kLanes; start < count; start += kAtOnce * kLanes) {
    std::uint32_t loaded[kAtOnce];
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k) {
      if (start + k * kLanes < count) loaded[k] = load(start + k * kLanes);
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k) {
      if (start + k * kLanes < count) store(start + k * kLanes, loaded[k]);
    }
  }
}

template <class Kind>
__global__ void __launch_bounds__(kTileWarps* kLanes, Kind::kBlocks)
    look_kernel(const __grid_constant__ DetectArguments arguments) {
  __shared__ std::uint32_t pairs_of[kTileWarps][kTileElements / 2];
  __shared__ std::uint32_t notes_of[kTileWarps][kNotesMost];
  const std::uint32_t number = tile_of_warp();
  if (number >= arguments.tile_count) return;
  const std::uint32_t lane = threadIdx.x % kLanes;
  const Tile tile = tile_at(arguments, number);
  const TileTensor tensor = arguments.tensors[tile.tensor];
  const ChangeRule& rule = arguments.rules[tensor.rule];  // Of a snapshot nobody reads it.
  std::uint32_t* pairs = pairs_of[threadIdx.x / kLanes];
  std::uint32_t words[2] = {};
#pragma unroll 1
  for (std::uint32_t half = 0; half < 2; ++half) {
    const std::uint64_t first = tile.first + half * (kTileElements / 2);
    const std::uint64_t left = tensor.elements > first ? tensor.elements - first : 0;
    words[0] = words[1];
    words[1] = look_at_rows<Kind>(tensor, rule, first, left, pairs + half * (kTileElements / 4));
  }
  const TileBits bits(words[0], words[1]);
  const std::uint32_t count = bits.count();
  if (lane == 0) {
    arguments.counts[number] = count;
    if (count > 0) add_to(&arguments.groups[number / arguments.group_tiles], count);
  }
  std::uint32_t* notes = arguments.notes + std::uint64_t{number} * kNotesMost;
  if (count > kNotesMost) {
    notes[lane] = words[0];
    notes[kLanes + lane] = words[1];
    return;
  }
  std::uint32_t* ready = notes_of[threadIdx.x / kLanes];
  __syncwarp();
  bits.for_mine([&](std::uint32_t i, std::uint32_t position) {
    const std::uint32_t row = position / kLanes;
    const std::uint32_t pair = pairs[row / 2 * kLanes + position % kLanes];
    ready[i] = position << 16 | Kind::value_of_pair(row % 2 == 0 ? pair & 0xFFFFU : pair >> 16);
  });
  __syncwarp();
  // Whole sectors of 32 bytes: of a part, memory would have to fill the rest.
  for (std::uint32_t i = lane; i < (count + 7) / 8 * 8; i += kLanes) notes[i] = ready[i];
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

template <class Kind>
__global__ void __launch_bounds__(kTileWarps* kLanes) write_kernel(const __grid_constant__ DetectArguments arguments) {
  __shared__ std::uint16_t positions_of[kTileWarps][kTileElements];
  const std::uint32_t number = tile_of_warp();
  if (number >= arguments.tile_count) return;
  const std::uint32_t lane = threadIdx.x % kLanes;
  const std::uint32_t changed = arguments.counts[number];
  const std::uint64_t place = arguments.places[number];
  const Tile tile = tile_at(arguments, number);
  if (lane == 0) write_offsets(arguments, tile, place, changed);
  if (changed == 0 || place >= arguments.capacity) return;
  const auto fits = static_cast<std::uint32_t>(min(std::uint64_t{changed}, arguments.capacity - place));
  const std::uint32_t* notes = arguments.notes + std::uint64_t{number} * kNotesMost;
  const auto store = [&](std::uint32_t i, std::uint32_t note) {
    const std::uint64_t index = tile.first + (note >> 16);
    arguments.values[place + i] = static_cast<std::uint16_t>(note);
    if (arguments.indices32 != nullptr) arguments.indices32[place + i] = static_cast<std::int32_t>(index);
    if (arguments.indices64 != nullptr) arguments.indices64[place + i] = static_cast<std::int64_t>(index);
  };
  if (changed <= kNotesMost) {
    load_then_store(fits, [&](std::uint32_t i) { return __ldcs(notes + i); }, store);
    return;
  }
  const TileTensor tensor = arguments.tensors[tile.tensor];
  std::uint16_t* positions = positions_of[threadIdx.x / kLanes];
  TileBits(notes[lane], notes[kLanes + lane]).for_mine([&](std::uint32_t i, std::uint32_t position) {
    positions[i] = static_cast<std::uint16_t>(position);
  });
  __syncwarp();
  const auto note = [&](std::uint32_t i) -> std::uint32_t {
    return Kind::value(tensor, tile.first + positions[i]) | std::uint32_t{positions[i]} << 16;
  };
  load_then_store(fits, note, store);
}

}  // namespace areal::delta::cuda
