// Codes a delta in five launches: number the blocks, look at each and choose its codes, place them, write them, and the
// header. A block of 128 threads takes a coded block; none waits for another.
#include <cuda_runtime.h>

#include "engine/delta/cuda/wire.h"
#include "engine/delta/cuda/wire_block.cuh"
#include "engine/delta/wire/bf16_step.h"

namespace areal::delta::cuda {
namespace {

constexpr std::uint32_t kGroups = 1024;
constexpr std::uint32_t kPlaceThreads = 1024;

struct Workspace {
  std::uint64_t* starts;  // tensors + 1.
  WireSums* sums;
  std::uint64_t* groups;  // Units of the blocks of each.
  std::uint64_t* heads;   // One a block.
  std::uint64_t* places;  // One a block: its units, later its begin.
};

constexpr std::uint64_t kSumsUnits = sizeof(WireSums) / 8;

std::uint64_t most_blocks(std::uint32_t tensors, std::uint64_t most) { return most / wire::kBlockChanges + tensors; }

Workspace workspace_of(void* memory, std::uint32_t tensors, std::uint64_t most) {
  auto* at = static_cast<std::uint64_t*>(memory);
  Workspace space{};
  space.sums = reinterpret_cast<WireSums*>(at);
  space.groups = at + kSumsUnits;
  space.starts = space.groups + kGroups;
  space.heads = space.starts + tensors + 1;
  space.places = space.heads + most_blocks(tensors, most);
  return space;
}

struct Job {
  WireEncodeInput input;
  Workspace space;
  WireRoom room;
  WireOutcome* outcome;
  std::uint64_t group_blocks;  // Blocks of a group.

  [[nodiscard]] __device__ std::uint32_t value_bytes() const { return input.values16 != nullptr ? 2 : 4; }
  // Units in front of the blocks.
  [[nodiscard]] __device__ std::uint64_t ahead(std::uint64_t blocks) const {
    return wire::kHeaderUnits + wire::kTensorUnits * std::uint64_t{input.count} + wire::kBlockRowUnits * blocks;
  }
};

__global__ void __launch_bounds__(kLanes) number_kernel(const __grid_constant__ Job job) {
  const WireEncodeInput& input = job.input;
  const bool is_steps = input.form == wire::Form::kSteps;
  bool is_good = input.offsets[0] == 0 && input.offsets[input.count] <= input.most;
  const Counted all = number_blocks(
      input.count,
      [&](std::uint32_t t) {
        const std::uint64_t changes = input.offsets[t + 1] - input.offsets[t];
        const bool fits = input.offsets[t] <= input.offsets[t + 1] && input.offsets[t + 1] <= input.most &&
                          changes <= input.tensors[t].elements && input.tensors[t].elements <= PlusUpTo::kMost &&
                          (!is_steps || changes == 0 || input.tensors[t].base != nullptr);
        is_good = is_good && fits;
        return fits ? changes : 0;
      },
      [&](std::uint32_t t, Counted before) { job.space.starts[t] = before.blocks; });
  is_good = __all_sync(kWholeWarp, is_good) != 0;
  if (threadIdx.x != 0) return;
  job.space.starts[input.count] = all.blocks;
  job.space.sums->worst = is_good ? kWireGood : wire_report(kNoBlock, WireReason::kOffsets);
  job.space.sums->blocks = is_good ? all.blocks : 0;
}

// The changes of a coded block as far as this thread has them.
struct MyChanges {
  std::uint64_t gaps[kWireRows];  // 0 for a block's first.
  std::uint32_t values[kWireRows];
  std::uint32_t steps[kWireRows];
};

template <class Index>
__device__ const Index* indices_of(const WireEncodeInput& input) {
  if constexpr (sizeof(Index) == 4) return input.indices32;
  if constexpr (sizeof(Index) == 8) return input.indices64;
}

// False, for all threads, if indices do not ascend inside the tensor. `content`: what this thread's changes add.
template <class Index>
__device__ bool load_changes(const WireEncodeInput& input, const BlockOwner& owner, MyChanges& mine,
                             std::uint64_t& content) {
  const Index* indices = indices_of<Index>(input) + owner.first;
  const WireTensor tensor = input.tensors[owner.tensor];
  const bool has_before = owner.first > input.offsets[owner.tensor];
  const std::uint64_t key = wire::content_key(owner.tensor);
  bool is_good = true;
  content = 0;
#pragma unroll
  for (std::uint32_t row = 0; row < kWireRows; ++row) {
    const std::uint32_t i = change_of(row);
    mine.gaps[row] = mine.values[row] = mine.steps[row] = 0;
    if (i >= owner.changes) continue;
    const Index index = indices[i];
    const auto place = static_cast<std::uint64_t>(index);
    const bool is_inside = index >= 0 && place < tensor.elements;
    is_good = is_good && is_inside;
    if (i > 0 || has_before) {
      const Index before = indices[static_cast<std::int64_t>(i) - 1];
      is_good = is_good && before < index;
      if (i > 0) mine.gaps[row] = place - static_cast<std::uint64_t>(before) - 1;
    }
    mine.values[row] = input.values16 != nullptr ? input.values16[owner.first + i] : input.values32[owner.first + i];
    content += wire::content_part(key, place, mine.values[row]);
    if (input.form == wire::Form::kSteps && is_inside) {
      mine.steps[row] = wire::step_number(tensor.base[place], mine.values[row]);
    }
  }
  return __syncthreads_and(is_good) != 0;
}

// The code of a list in which this thread has `mine`, those from change `first` on; numbers outside are 0.
template <class Number>
__device__ wire::ChosenCode choose_list(const Number (&mine)[kWireRows], std::uint32_t first, std::uint32_t changes) {
  std::uint64_t total = 0;
  std::uint64_t lengths = 0;
  std::uint64_t most = 0;
#pragma unroll
  for (std::uint32_t row = 0; row < kWireRows; ++row) {
    total += mine[row];
    lengths += wire::bit_length(mine[row]);
    most |= mine[row];  // As long as the longest.
  }
  const wire::StreamSums sums{changes - first, combine_all(total, Plus{}), combine_all(lengths, Plus{}),
                              combine_all(most, Either{})};
  wire::ChosenCode best;
  for (std::uint32_t candidate = 0; candidate < wire::kCandidates; ++candidate) {
    const wire::StreamCode code = wire::candidate_code(sums, candidate);
    if (candidate > 0 && code.rule == wire::Rule::kPacked) continue;
    std::uint64_t zeros = 0;
#pragma unroll
    for (std::uint32_t row = 0; row < kWireRows; ++row) {
      const std::uint32_t i = change_of(row);
      if (i >= first && i < changes) zeros += wire::zeros_of(code, mine[row]);
    }
    zeros = combine_all(zeros, Plus{});
    const wire::ChosenCode now{code, wire::unary_bits(code, sums.count, zeros),
                               wire::low_bits(code, sums.count, zeros)};
    if (candidate == 0 || now.unary + now.low < best.unary + best.low) best = now;
  }
  return best;
}

template <class Index>
__global__ void __launch_bounds__(kWireThreads) look_kernel(const __grid_constant__ Job job) {
  const WireEncodeInput& input = job.input;
  WireSums* sums = job.space.sums;
  std::uint64_t content = 0;
  for (std::uint64_t block = blockIdx.x; block < sums->blocks; block += gridDim.x) {
    const BlockOwner owner = owner_of(block, job.space.starts, input.offsets, input.count);
    MyChanges mine;
    std::uint64_t own_content = 0;
    if (!load_changes<Index>(input, owner, mine, own_content)) {
      if (threadIdx.x == 0) {
        report(&sums->worst, block, WireReason::kIndices);
        job.space.heads[block] = 0;
        job.space.places[block] = 0;
      }
      continue;
    }
    content += own_content;
    const wire::ChosenCode gaps = choose_list(mine.gaps, 1, owner.changes);
    const wire::ChosenCode steps =
        input.form == wire::Form::kSteps ? choose_list(mine.steps, 0, owner.changes) : wire::ChosenCode{};
    const wire::BlockHead head = wire::head_of(gaps, steps, input.form, job.value_bytes(), owner.changes);
    if (threadIdx.x != 0) continue;
    const std::uint64_t units = wire::parts_of(head, owner.changes).units();
    job.space.heads[block] = wire::pack_head(head);
    job.space.places[block] = units;
    add_to(job.space.groups + block / job.group_blocks, units);
  }
  content = combine_all(content, Plus{});
  if (threadIdx.x == 0) add_to(&sums->content, content);
}

// A sum over 1,024 threads up to each; returns that of all to all.
__device__ std::uint64_t scan_group(std::uint64_t& mine) {
  __shared__ std::uint64_t warps[kLanes];
  const std::uint32_t lane = threadIdx.x % kLanes;
  const auto scan_warp = [&](std::uint64_t sum) {
#pragma unroll
    for (std::uint32_t step = 1; step < kLanes; step *= 2) {
      const std::uint64_t before = __shfl_up_sync(kWholeWarp, sum, step);
      if (lane >= step) sum += before;
    }
    return sum;
  };
  mine = scan_warp(mine);
  __syncthreads();
  if (lane == kLanes - 1) warps[threadIdx.x / kLanes] = mine;
  __syncthreads();
  const std::uint64_t ahead = scan_warp(warps[lane]);
  const std::uint32_t warp = threadIdx.x / kLanes;
  const std::uint64_t before = __shfl_sync(kWholeWarp, ahead, warp == 0 ? 0 : warp - 1);
  if (warp > 0) mine += before;
  return __shfl_sync(kWholeWarp, ahead, kLanes - 1);
}

__global__ void __launch_bounds__(kPlaceThreads) place_kernel(const __grid_constant__ Job job) {
  static_assert(kGroups == kPlaceThreads);
  WireSums* sums = job.space.sums;
  std::uint64_t before = threadIdx.x < blockIdx.x ? job.space.groups[threadIdx.x] : 0;
  std::uint64_t begin = scan_group(before);
  const std::uint64_t first = blockIdx.x * job.group_blocks;
  const std::uint64_t behind = min(first + job.group_blocks, sums->blocks);
  for (std::uint64_t start = first; start < behind; start += kPlaceThreads) {
    const std::uint64_t block = start + threadIdx.x;
    const std::uint64_t own = block < behind ? job.space.places[block] : 0;
    std::uint64_t sum = own;
    const std::uint64_t all = scan_group(sum);
    if (block < behind) job.space.places[block] = begin + sum - own;
    begin += all;
  }
  if (threadIdx.x != 0 || blockIdx.x + 1 != gridDim.x) return;
  sums->units = begin;
  if (begin > wire::kMostUnits) report(&sums->worst, kNoBlock, WireReason::kTooLong);
  if (job.ahead(sums->blocks) + begin > job.room.capacity) report(&sums->worst, kNoBlock, WireReason::kRoom);
}

// Puts a list into a block's words. Numbers before change `first` are none.
template <class Number>
__device__ void put_list(const Number (&mine)[kWireRows], wire::StreamCode code, std::uint32_t first,
                         std::uint32_t changes, std::uint32_t unary_word, std::uint32_t low_word, BlockWords& block) {
  std::uint32_t ends[kWireRows];  // Behind each number's 1.
#pragma unroll
  for (std::uint32_t row = 0; row < kWireRows; ++row) {
    const std::uint32_t i = change_of(row);
    const bool is_there = i >= first && i < changes;
    ends[row] = is_there ? static_cast<std::uint32_t>(wire::zeros_of(code, mine[row])) + 1 : 0;
  }
  scan_changes(ends, Plus{});
#pragma unroll
  for (std::uint32_t row = 0; row < kWireRows; ++row) {
    const std::uint32_t i = change_of(row);
    if (i < first || i >= changes) continue;
    const wire::SplitNumber split = wire::split_number(code, mine[row]);
    const std::uint32_t number = i - first;
    std::uint32_t low = low_word * 32 + number * code.k;
    if (code.rule != wire::Rule::kPacked) block.put_bits(unary_word * 32 + ends[row] - 1, 1, 1);
    if (code.rule == wire::Rule::kExpGolomb) {
      low += ends[row] - 1 - static_cast<std::uint32_t>(split.zeros) - number;  // Zeros of all before.
    }
    block.put_bits(low, split.low, split.width);
  }
}

// Copies a block's words to the message, and adds up its check.
__device__ std::uint32_t store_words(const BlockWords& block, std::uint32_t units, std::uint64_t* to) {
  std::uint64_t check = 0;
  for (std::uint32_t i = threadIdx.x; i < units; i += kWireThreads) {
    const std::uint64_t unit = block.words[2 * i] | (std::uint64_t{block.words[2 * i + 1]} << 32);
    to[i] = unit;
    check += wire::check_part(i, unit);
  }
  return wire::fold_check(combine_all(check, Plus{}));
}

template <class Index>
__global__ void __launch_bounds__(kWireThreads) write_kernel(const __grid_constant__ Job job) {
  __shared__ BlockWords words;
  const WireEncodeInput& input = job.input;
  WireSums* sums = job.space.sums;
  if (sums->worst != kWireGood) return;
  const std::uint64_t blocks = sums->blocks;
  std::uint64_t rows = 0;
  for (std::uint64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const BlockOwner owner = owner_of(block, job.space.starts, input.offsets, input.count);
    MyChanges mine;
    std::uint64_t content = 0;
    load_changes<Index>(input, owner, mine, content);
    const std::uint64_t packed = job.space.heads[block];
    const wire::BlockHead head = wire::unpack_head(packed);
    const wire::BlockParts parts = wire::parts_of(head, owner.changes);
    for (std::uint32_t i = threadIdx.x; i < 2 * parts.units() + 4; i += kWireThreads) words.words[i] = 0;
    __syncthreads();
    if (threadIdx.x < 2) words.words[threadIdx.x] = static_cast<std::uint32_t>(packed >> (32 * threadIdx.x));
    put_list(mine.gaps, head.gaps, 1, owner.changes, parts.gap_unary, parts.gap_low, words);
    if (head.has_steps) {
      put_list(mine.steps, head.values, 0, owner.changes, parts.value_unary, parts.value_low, words);
    } else {
      put_list(mine.values, head.values, 0, owner.changes, parts.value_unary, parts.value_low, words);
    }
    __syncthreads();
    const std::uint64_t begin = job.space.places[block];
    const std::uint32_t check = store_words(words, parts.units(), job.room.units + job.ahead(blocks) + begin);
    if (threadIdx.x != 0) continue;
    const wire::BlockRow row{static_cast<std::uint64_t>(indices_of<Index>(input)[owner.first]),
                             static_cast<std::uint32_t>(begin), check};
    const std::uint64_t place = job.ahead(block);
    job.room.units[place] = row.first_index;
    job.room.units[place + 1] = wire::row_word(row);
    rows += wire::check_part(place, row.first_index) + wire::check_part(place + 1, wire::row_word(row));
  }
  if (threadIdx.x == 0) add_to(&sums->rows, rows);
}

__global__ void __launch_bounds__(kWireThreads) header_kernel(const __grid_constant__ Job job) {
  const WireEncodeInput& input = job.input;
  const WireSums sums = *job.space.sums;
  const std::uint64_t changes = input.offsets[input.count];
  if (threadIdx.x == 0) *job.outcome = {sums.worst, job.ahead(sums.blocks) + sums.units, changes, sums.blocks};
  if (sums.worst != kWireGood) return;
  std::uint64_t check = 0;
  const auto put = [&](std::uint64_t place, std::uint64_t unit) {
    job.room.units[place] = unit;
    check += wire::check_part(place, unit);
  };
  for (std::uint32_t t = threadIdx.x; t < input.count; t += kWireThreads) {
    const std::uint64_t place = wire::kHeaderUnits + wire::kTensorUnits * std::uint64_t{t};
    put(place, input.tensors[t].elements);
    put(place + 1, input.offsets[t + 1] - input.offsets[t]);
  }
  if (threadIdx.x == 0) {
    put(0, wire::kMagic);
    put(1, static_cast<std::uint64_t>(input.form) | (std::uint64_t{job.value_bytes()} << 32));
    put(2, input.count);
    put(3, changes);
    put(4, sums.blocks);
    put(5, sums.units);
    put(6, sums.content);
  }
  check = combine_all(check, Plus{});
  if (threadIdx.x == 0) job.room.units[7] = check + sums.rows;
}

Status check_input(const WireEncodeInput& input, const WireRoom& room) {
  const bool has_indices = (input.indices32 != nullptr) != (input.indices64 != nullptr);
  const bool has_values = (input.values16 != nullptr) != (input.values32 != nullptr);
  if (!has_indices || !has_values) return Error{Errc::kInvalid, "one list of indices and one of values, please"};
  if (input.form == wire::Form::kSteps && input.values16 == nullptr) {
    return Error{Errc::kInvalid, "steps are of values of 2 bytes"};
  }
  if (input.offsets == nullptr || (input.count > 0 && input.tensors == nullptr) || room.units == nullptr) {
    return Error{Errc::kInvalid, "tensors, their offsets and room for the message, please"};
  }
  return Unit{};
}

}  // namespace

std::size_t wire_encode_workspace(std::uint32_t tensors, std::uint64_t most) {
  return 8 * (kSumsUnits + kGroups + tensors + 1 + 2 * most_blocks(tensors, most));
}

std::uint64_t wire_most_units(std::uint32_t tensors, std::uint64_t most, std::uint64_t largest,
                              std::uint32_t value_bytes) {
  // All packed, and one word more where a part begins.
  const std::uint64_t gap_words = std::uint64_t{wire::kBlockChanges} * wire::bit_length(largest) / 32 + 2;
  const std::uint64_t value_words = std::uint64_t{wire::kBlockChanges} * value_bytes / 4 + 2;
  const std::uint64_t block = 1 + (gap_words + value_words + 1) / 2;
  return wire::kHeaderUnits + wire::kTensorUnits * std::uint64_t{tensors} +
         (wire::kBlockRowUnits + block) * most_blocks(tensors, most);
}

Status wire_encode(const WireEncodeInput& input, const WireRoom& room, void* workspace, WireOutcome* outcome,
                   Stream stream) {
  AREAL_TRY(check_input(input, room));
  const std::uint64_t most = most_blocks(input.count, input.most);
  const Job job{input, workspace_of(workspace, input.count, input.most), room, outcome,
                most / kGroups + (most % kGroups == 0 ? 0 : 1) + (most == 0 ? 1 : 0)};
  cudaMemsetAsync(workspace, 0, 8 * (kSumsUnits + kGroups), stream);
  number_kernel<<<1, kLanes, 0, stream>>>(job);
  const std::uint32_t grid = wire_grid(most);
  if (input.indices32 != nullptr) {
    look_kernel<std::int32_t><<<grid, kWireThreads, 0, stream>>>(job);
  } else {
    look_kernel<std::int64_t><<<grid, kWireThreads, 0, stream>>>(job);
  }
  place_kernel<<<kGroups, kPlaceThreads, 0, stream>>>(job);
  if (input.indices32 != nullptr) {
    write_kernel<std::int32_t><<<grid, kWireThreads, 0, stream>>>(job);
  } else {
    write_kernel<std::int64_t><<<grid, kWireThreads, 0, stream>>>(job);
  }
  header_kernel<<<1, kWireThreads, 0, stream>>>(job);
  return last_error("wire coding");
}

}  // namespace areal::delta::cuda
