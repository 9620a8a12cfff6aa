// One block of the detector: a warp that fetches tiles, warps that look at them, and a warp that writes what they
// found.
//
//   fetch: ticket -> tensor -> bulk copies into a slot          slots: full / empty
//   look:  screen, rule where needed, count, pack into a bin    bins: packed / drained
//   write: place of the tile from published counts -> indices and values
//
// Slots and bins are rings in shared memory; their barriers are the only meeting points of the roles, and the looking
// warps meet once a tile among themselves.
#pragma once
#include <cstdint>

#include "engine/delta/cuda/change_rule.h"
#include "engine/delta/cuda/device_ops.cuh"

namespace areal::delta::cuda {

inline constexpr std::uint32_t kArraysMost = 3;
inline constexpr std::uint32_t kNoTile = 0xFFFFFFFF;
inline constexpr std::uint32_t kBins = 2;

struct TileTensor {
  const void* arrays[kArraysMost];
  std::uint64_t elements;
  std::uint32_t rule;
  std::uint32_t unused;
};

// Carries over from launch to launch; all zero before the first.
struct DetectState {
  std::uint32_t ticket;
  std::uint32_t finished_blocks;
  std::uint32_t epoch;  // Counts of other launches than this one's do not count.
  std::uint32_t unused;
};

struct DetectArguments {
  const TileTensor* tensors;
  const std::uint32_t* first_tiles;  // tensor_count + 1.
  const ChangeRule* rules;
  DetectState* state;
  std::uint64_t* counts;  // One for each tile: epoch above, count below.
  std::int32_t* indices32;
  std::int64_t* indices64;
  std::uint16_t* values;
  std::uint64_t* offsets;
  std::uint64_t capacity;
  std::uint32_t tensor_count;
  std::uint32_t tile_count;
};

// Of a slot or a bin: which tile it holds.
struct TilePlace {
  std::uint32_t tile;
  std::uint32_t tensor;
  std::uint32_t elements;  // In the tile.
  std::uint32_t changed;   // Of a bin.
  std::uint64_t first;     // Index of the tile's first element in its tensor.
};

// What `Kind` says: kArrays, Element, kTile, kSlots, kWarps; see detect.cu.
template <class Kind>
struct DetectShared {
  using Element = typename Kind::Element;
  static constexpr std::uint32_t kRowsEnd =
      Kind::kTile * sizeof(Element) + 16;  // Room for a start that is not aligned.

  alignas(128) unsigned char data[Kind::kSlots][Kind::kArrays][kRowsEnd];
  alignas(16) std::uint32_t bins[kBins][Kind::kTile];  // Index in the tile above, value below.
  ChangeRule rules[Kind::kSlots];
  TilePlace slot_places[Kind::kSlots];
  TilePlace bin_places[kBins];
  std::uint32_t shifts[Kind::kSlots][kArraysMost];  // Elements from the slot's start to the tile's first.
  std::uint32_t warp_counts[kBins][Kind::kWarps];
  Barrier full[Kind::kSlots];
  Barrier empty[Kind::kSlots];
  Barrier packed[kBins];
  Barrier drained[kBins];

  [[nodiscard]] __device__ const Element* array(std::uint32_t slot, std::uint32_t which) const {
    return reinterpret_cast<const Element*>(data[slot][which]) + shifts[slot][which];
  }
};

// Position in a ring of `kSize` places, and the parity of its barriers' phases.
template <std::uint32_t kSize>
struct RingPlace {
  std::uint32_t place = 0;
  std::uint32_t round = 0;
  __device__ void advance() {
    if (++place < kSize) return;
    place = 0;
    round ^= 1U;
  }
};

// The warp that fetches. All lanes run all of it.
template <class Kind>
class Fetcher {
 public:
  using Element = typename Kind::Element;
  __device__ Fetcher(const DetectArguments& arguments, DetectShared<Kind>& shared)
      : arguments_(arguments), shared_(shared), lane_(threadIdx.x % kLanes), policy_(read_once_policy()) {}

  __device__ void run() {
    std::uint32_t drawn = lane_ == 0 ? atomicAdd(&arguments_.state->ticket, 1U) : 0;
    for (RingPlace<Kind::kSlots> ring;; ring.advance()) {
      const std::uint32_t tile = __shfl_sync(kWholeWarp, drawn, 0);
      shared_.empty[ring.place].wait(ring.round ^ 1U);
      if (tile >= arguments_.tile_count) {
        if (lane_ == 0) shared_.slot_places[ring.place].tile = kNoTile;
        if (lane_ == 0) shared_.full[ring.place].arrive();
        return;
      }
      if (lane_ == 0) drawn = atomicAdd(&arguments_.state->ticket, 1U);  // Arrives while this tile is fetched.
      if (tile >= tensor_end_) move_to_tensor_of(tile);
      fetch(ring.place, tile);
    }
  }

 private:
  // Tensors behind the present one are looked through 32 at a time; tickets only grow.
  __device__ void move_to_tensor_of(std::uint32_t tile) {
    std::uint32_t below = kLanes;
    std::uint32_t next = tensor_ == kNoTile ? 0 : tensor_ + 1;
    while (below == kLanes) {
      const std::uint32_t mine = next + lane_;
      const bool starts_before = mine < arguments_.tensor_count && arguments_.first_tiles[mine] <= tile;
      below = __popc(__ballot_sync(kWholeWarp, starts_before));
      next += below;
    }
    tensor_ = next - 1;
    tensor_first_ = arguments_.first_tiles[tensor_];
    tensor_end_ = arguments_.first_tiles[tensor_ + 1];
    entry_ = arguments_.tensors[tensor_];
    if (Kind::kHasRule && lane_ < kChangeRuleWords) {
      rule_word_ = reinterpret_cast<const std::uint32_t*>(arguments_.rules + entry_.rule)[lane_];
    }
  }

  __device__ void fetch(std::uint32_t slot, std::uint32_t tile) {
    const std::uint64_t first = std::uint64_t{tile - tensor_first_} * Kind::kTile;
    const std::uint64_t rest = entry_.elements - first;
    const std::uint32_t count = rest < Kind::kTile ? static_cast<std::uint32_t>(rest) : Kind::kTile;
    if (Kind::kHasRule && lane_ < kChangeRuleWords) {
      reinterpret_cast<std::uint32_t*>(&shared_.rules[slot])[lane_] = rule_word_;
    }
    const void* sources[Kind::kArrays];
    std::uint32_t bytes[Kind::kArrays];
    std::uint32_t all_bytes = 0;
#pragma unroll
    for (std::uint32_t which = 0; which < Kind::kArrays; ++which) {
      const auto start = reinterpret_cast<std::uint64_t>(static_cast<const Element*>(entry_.arrays[which]) + first);
      const std::uint32_t ahead = static_cast<std::uint32_t>(start % 16);
      const std::uint32_t end = ahead + count * static_cast<std::uint32_t>(sizeof(Element));
      sources[which] = reinterpret_cast<const void*>(start - ahead);
      bytes[which] = end / 16 * 16;
      all_bytes += bytes[which];
      if (lane_ == 0) shared_.shifts[slot][which] = ahead / static_cast<std::uint32_t>(sizeof(Element));
      copy_rest(slot, which, sources[which], ahead, bytes[which], end);
    }
    __syncwarp();
    if (lane_ != 0) return;
    shared_.slot_places[slot] = {tile, tensor_, count, 0, first};
    fence_for_copies();
    shared_.full[slot].arrive_expecting(all_bytes);
#pragma unroll
    for (std::uint32_t which = 0; which < Kind::kArrays; ++which) {
      if (bytes[which] == 0) continue;
      copy_bulk(shared_.data[slot][which], sources[which], bytes[which], shared_.full[slot], policy_);
    }
  }

  // The bulk copy moves whole units of 16 bytes; the last, if it is not whole, comes element by element. So nothing
  // behind the tensor is read; in front of it, at most the rest of its first unit, which no allocation cuts.
  __device__ void copy_rest(std::uint32_t slot, std::uint32_t which, const void* source, std::uint32_t ahead,
                            std::uint32_t from, std::uint32_t end) {
    const std::uint32_t at = from + lane_ * static_cast<std::uint32_t>(sizeof(Element));
    if (at < end && at >= ahead) {
      *reinterpret_cast<Element*>(shared_.data[slot][which] + at) =
          *reinterpret_cast<const Element*>(static_cast<const unsigned char*>(source) + at);
    }
  }

  const DetectArguments& arguments_;
  DetectShared<Kind>& shared_;
  const std::uint32_t lane_;
  const std::uint64_t policy_;
  std::uint32_t tensor_ = kNoTile;
  std::uint32_t tensor_first_ = 0;
  std::uint32_t tensor_end_ = 0;
  std::uint32_t rule_word_ = 0;
  TileTensor entry_{};
};

// The warps that look. Each has kTile / kWarps elements of a tile that follow each other, in rows of 32.
template <class Kind>
class Looker {
 public:
  static constexpr std::uint32_t kRows = Kind::kTile / Kind::kWarps / kLanes;
  static_assert(kRows * Kind::kWarps * kLanes == Kind::kTile && kRows % 2 == 0 && kRows <= 32);
  static_assert(Kind::kTile <= 0x10000, "an index in a tile has 16 bits");

  __device__ Looker(const DetectArguments& arguments, DetectShared<Kind>& shared, std::uint32_t epoch)
      : arguments_(arguments),
        shared_(shared),
        warp_(threadIdx.x / kLanes),
        lane_(threadIdx.x % kLanes),
        epoch_(epoch) {}

  __device__ void run() {
    RingPlace<kBins> bin;
    for (RingPlace<Kind::kSlots> slot;; slot.advance(), bin.advance()) {
      shared_.full[slot.place].wait(slot.round);
      TilePlace place = shared_.slot_places[slot.place];
      if (place.tile == kNoTile) {
        shared_.drained[bin.place].wait(bin.round ^ 1U);
        if (threadIdx.x == 0) shared_.bin_places[bin.place].tile = kNoTile;
        __syncwarp();
        if (lane_ == 0) shared_.packed[bin.place].arrive();
        return;
      }
      std::uint32_t values[kRows / 2];
      const std::uint32_t changed =
          Kind::template look<kRows>(shared_, slot.place, warp_ * kRows * kLanes + lane_, place.elements, values);
      const std::uint32_t count = __reduce_add_sync(kWholeWarp, __popc(changed));
      if (lane_ == 0) shared_.warp_counts[bin.place][warp_] = count;
      if (lane_ == 0) shared_.empty[slot.place].arrive();  // After the warp's reduction: all lanes have looked.
      sync_threads(1, Kind::kWarps * kLanes);
      const std::uint32_t start = publish(bin.place, place);
      shared_.drained[bin.place].wait(bin.round ^ 1U);
      if (threadIdx.x == 0) shared_.bin_places[bin.place] = place;
      if (count != 0) pack(bin.place, changed, values, start);
      __syncwarp();
      if (lane_ == 0) shared_.packed[bin.place].arrive();
    }
  }

 private:
  // Where this warp's part of the bin begins. Lets other blocks know the tile's count before anything else is done.
  __device__ std::uint32_t publish(std::uint32_t bin, TilePlace& place) {
    const std::uint32_t counted = lane_ < Kind::kWarps ? shared_.warp_counts[bin][lane_] : 0;
    place.changed = __reduce_add_sync(kWholeWarp, counted);
    if (threadIdx.x == 0) {
      store_word(&arguments_.counts[place.tile], (std::uint64_t{epoch_} << 32) | place.changed);
    }
    return __reduce_add_sync(kWholeWarp, lane_ < warp_ ? counted : 0);
  }

  __device__ void pack(std::uint32_t bin, std::uint32_t changed, const std::uint32_t (&values)[kRows / 2],
                       std::uint32_t start) {
    const std::uint32_t lanes_before = (1U << lane_) - 1U;
    const std::uint32_t first = warp_ * kRows * kLanes + lane_;
#pragma unroll
    for (std::uint32_t row = 0; row < kRows; ++row) {
      const bool mine = ((changed >> row) & 1U) != 0;
      const std::uint32_t row_changed = __ballot_sync(kWholeWarp, mine);
      if (mine) {
        const std::uint32_t value = (values[row / 2] >> (row % 2 * 16)) & 0xFFFFU;
        shared_.bins[bin][start + __popc(row_changed & lanes_before)] = ((first + row * kLanes) << 16) | value;
      }
      start += __popc(row_changed);
    }
  }

  const DetectArguments& arguments_;
  DetectShared<Kind>& shared_;
  const std::uint32_t warp_;
  const std::uint32_t lane_;
  const std::uint32_t epoch_;
};

// The warp that writes. All lanes run all of it.
template <class Kind>
class Writer {
 public:
  __device__ Writer(const DetectArguments& arguments, DetectShared<Kind>& shared, std::uint32_t epoch)
      : arguments_(arguments), shared_(shared), lane_(threadIdx.x % kLanes), epoch_(epoch) {}

  __device__ void run() {
    for (RingPlace<kBins> ring;; ring.advance()) {
      shared_.packed[ring.place].wait(ring.round);
      const TilePlace place = shared_.bin_places[ring.place];
      if (place.tile == kNoTile) break;
      base_ += changed_between(next_tile_, place.tile);
      if (lane_ == 0) write_offsets(place);
      write(ring.place, place);
      base_ += place.changed;
      next_tile_ = place.tile + 1;
      __syncwarp();
      if (lane_ == 0) shared_.drained[ring.place].arrive();
    }
    if (lane_ == 0) leave();
  }

 private:
  static constexpr std::uint32_t kAtOnce = 8;

  // Sum of the counts of tiles from .. to - 1, as they are published.
  __device__ std::uint64_t changed_between(std::uint32_t from, std::uint32_t to) {
    std::uint64_t sum = 0;
    for (std::uint64_t start = from; start < to; start += kAtOnce * kLanes) {
      std::uint64_t words[kAtOnce];
#pragma unroll
      for (std::uint32_t i = 0; i < kAtOnce; ++i) {
        const std::uint64_t tile = start + i * kLanes + lane_;
        words[i] = tile < to ? load_word(&arguments_.counts[tile]) : std::uint64_t{epoch_} << 32;
      }
#pragma unroll
      for (std::uint32_t i = 0; i < kAtOnce; ++i) {
        while (static_cast<std::uint32_t>(words[i] >> 32) != epoch_) {
          words[i] = load_word(&arguments_.counts[start + i * kLanes + lane_]);
        }
        sum += static_cast<std::uint32_t>(words[i]);
      }
    }
#pragma unroll
    for (std::uint32_t step = kLanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, step);
    return sum;
  }

  // A tensor's first tile knows where the tensor begins, and the empty ones in front of it; the last tile knows the
  // end.
  __device__ void write_offsets(const TilePlace& place) {
    const std::uint32_t* first_tiles = arguments_.first_tiles;
    if (place.first == 0) {
      std::uint32_t tensor = place.tensor;
      arguments_.offsets[tensor] = base_;
      while (tensor > 0 && first_tiles[tensor - 1] == place.tile) arguments_.offsets[--tensor] = base_;
    }
    if (place.tile + 1 == arguments_.tile_count) {
      for (std::uint32_t t = place.tensor + 1; t <= arguments_.tensor_count; ++t) {
        arguments_.offsets[t] = base_ + place.changed;
      }
    }
  }

  __device__ void write(std::uint32_t bin, const TilePlace& place) {
    std::uint32_t fits = place.changed;
    if (base_ >= arguments_.capacity) return;
    if (arguments_.capacity - base_ < fits) fits = static_cast<std::uint32_t>(arguments_.capacity - base_);
#pragma unroll 4
    for (std::uint32_t i = lane_; i < fits; i += kLanes) {
      const std::uint32_t word = shared_.bins[bin][i];
      const std::uint64_t index = place.first + (word >> 16);
      std::uint32_t value = word & 0xFFFFU;
      if ((value & 0x7FFFU) > 0x7F80U && Kind::kHasRule) value = kCanonicalNan;
      if (arguments_.indices32 != nullptr) arguments_.indices32[base_ + i] = static_cast<std::int32_t>(index);
      if (arguments_.indices64 != nullptr) arguments_.indices64[base_ + i] = static_cast<std::int64_t>(index);
      arguments_.values[base_ + i] = static_cast<std::uint16_t>(value);
    }
  }

  // The last block makes the state ready for the next launch.
  __device__ void leave() {
    if (atomicAdd(&arguments_.state->finished_blocks, 1U) + 1U < gridDim.x) return;
    arguments_.state->ticket = 0;
    arguments_.state->finished_blocks = 0;
    arguments_.state->epoch = epoch_;
  }

  const DetectArguments& arguments_;
  DetectShared<Kind>& shared_;
  const std::uint32_t lane_;
  const std::uint32_t epoch_;
  std::uint64_t base_ = 0;
  std::uint32_t next_tile_ = 0;
};

template <class Kind>
__device__ inline void detect_block(const DetectArguments& arguments) {
  extern __shared__ __align__(128) unsigned char memory[];
  auto& shared = *reinterpret_cast<DetectShared<Kind>*>(memory);
  if (threadIdx.x == 0) {
    for (std::uint32_t slot = 0; slot < Kind::kSlots; ++slot) {
      shared.full[slot].set_up(1);
      shared.empty[slot].set_up(Kind::kWarps);
    }
    for (std::uint32_t bin = 0; bin < kBins; ++bin) {
      shared.packed[bin].set_up(Kind::kWarps);
      shared.drained[bin].set_up(1);
    }
    fence_for_copies();
  }
  __syncthreads();
  const std::uint32_t epoch = arguments.state->epoch + 1;
  const std::uint32_t warp = threadIdx.x / kLanes;
  if (warp < Kind::kWarps) {
    Looker<Kind>(arguments, shared, epoch).run();
  } else if (warp == Kind::kWarps) {
    Fetcher<Kind>(arguments, shared).run();
  } else {
    Writer<Kind>(arguments, shared, epoch).run();
  }
}

}  // namespace areal::delta::cuda
