// Decodes a delta in three launches: open the message, decode its blocks, compare sums. A block of 128 threads takes a
// coded block; none waits for another, and none believes what another has not checked.
#include <cuda_runtime.h>

#include "engine/delta/cuda/wire.h"
#include "engine/delta/cuda/wire_block.cuh"
#include "engine/delta/wire/bf16_step.h"

namespace areal::delta::cuda {
namespace {

constexpr std::uint64_t kSumsUnits = sizeof(WireSums) / 8;

struct Job {
  const std::uint64_t* message;
  std::uint64_t units;
  const WireTensor* tensors;
  std::uint32_t count;
  WireDecodeOutput output;
  WireSums* sums;
  std::uint64_t* starts;  // tensors + 1.
  WireOutcome* outcome;

  [[nodiscard]] __device__ std::uint32_t value_bytes() const { return output.values16 != nullptr ? 2 : 4; }
  [[nodiscard]] __device__ bool has_steps() const { return message[1] % 2 != 0; }
  // Units in front of row `row` of blocks.
  [[nodiscard]] __device__ std::uint64_t ahead(std::uint64_t row) const {
    return wire::kHeaderUnits + wire::kTensorUnits * std::uint64_t{count} + wire::kBlockRowUnits * row;
  }
};

// What is wrong with the first units, or that nothing is.
__device__ bool is_header_good(const Job& job, WireReason& reason) {
  reason = WireReason::kHeader;
  if (job.units < wire::kHeaderUnits || job.message[0] != wire::kMagic) return false;
  const std::uint64_t form = job.message[1] & 0xFFFFFFFFU;
  const std::uint64_t bytes = job.message[1] >> 32;
  if (form > static_cast<std::uint64_t>(wire::Form::kSteps) || bytes != job.value_bytes()) return false;
  if (form == static_cast<std::uint64_t>(wire::Form::kSteps) && bytes != 2) return false;
  reason = WireReason::kTensors;
  if (job.message[2] != job.count) return false;
  reason = WireReason::kLength;
  const std::uint64_t blocks = job.message[4];
  const std::uint64_t units = job.message[5];
  if (blocks > job.units || units > job.units || units > wire::kMostUnits) return false;
  if (job.ahead(blocks) + units != job.units) return false;
  reason = WireReason::kRoom;
  return job.message[3] <= job.output.most;
}

__global__ void __launch_bounds__(kLanes) open_kernel(const __grid_constant__ Job job) {
  WireReason reason{};
  const bool is_good = is_header_good(job, reason);
  if (threadIdx.x == 0) job.sums->worst = is_good ? kWireGood : wire_report(kNoBlock, reason);
  __syncwarp();
  if (!is_good) return;
  const std::uint64_t blocks = job.message[4];
  const bool has_steps = job.has_steps();
  bool fits_all = true;
  const Counted all = number_blocks(
      job.count,
      [&](std::uint32_t t) {
        const std::uint64_t place = wire::kHeaderUnits + wire::kTensorUnits * std::uint64_t{t};
        const WireTensor tensor = job.tensors[t];
        const std::uint64_t changes = job.message[place + 1];
        const bool fits = job.message[place] == tensor.elements && tensor.elements <= PlusUpTo::kMost &&
                          changes <= tensor.elements && wire::blocks_of(changes) <= blocks;
        fits_all = fits_all && fits;
        if (!fits || changes == 0) return std::uint64_t{0};
        if (has_steps && tensor.base == nullptr) report(&job.sums->worst, kNoBlock, WireReason::kNoBase);
        if (job.output.indices32 != nullptr && tensor.elements > wire::kNarrowElements) {
          report(&job.sums->worst, kNoBlock, WireReason::kNarrow);
        }
        return changes;
      },
      [&](std::uint32_t t, Counted before) {
        job.starts[t] = before.blocks;
        job.output.offsets[t] = before.changes;
      });
  fits_all = __all_sync(kWholeWarp, fits_all) != 0;
  if (threadIdx.x != 0) return;
  job.starts[job.count] = all.blocks;
  job.output.offsets[job.count] = all.changes;
  if (!fits_all || all.blocks != blocks || all.changes != job.message[3]) {
    report(&job.sums->worst, kNoBlock, WireReason::kTensors);
  }
  __threadfence();
  job.sums->blocks = atomicAdd(reinterpret_cast<unsigned long long*>(&job.sums->worst), 0ULL) == kWireGood ? blocks : 0;
}

// A list's numbers, for changes from `first` on; false, for all threads, if it is none. REQUIRES: the block is as long
// as parts_of() says.
__device__ bool read_list(const BlockWords& block, wire::StreamCode code, std::uint32_t unary_bits,
                          std::uint32_t unary_word, std::uint32_t low_word, std::uint32_t first, std::uint32_t changes,
                          std::uint64_t (&mine)[kWireRows]) {
  __shared__ std::uint16_t ends[wire::kBlockChanges];  // Place of each number's 1.
  const std::uint32_t count = changes - first;
  if (code.rule != wire::Rule::kPacked) {
    const std::uint32_t words = wire::words_of(unary_bits);
    const std::uint32_t share = (words + kWireThreads - 1) / kWireThreads;
    const std::uint32_t begin = min(threadIdx.x * share, words);
    const std::uint32_t end = min(begin + share, words);
    const auto word_at = [&](std::uint32_t i) {
      const std::uint32_t rest = unary_bits - i * 32;
      return block.words[unary_word + i] & (rest < 32 ? (1U << rest) - 1 : 0xFFFFFFFFU);
    };
    std::uint32_t ones = 0;
    for (std::uint32_t i = begin; i < end; ++i) ones += static_cast<std::uint32_t>(__popc(word_at(i)));
    if (scan_threads(ones) != count) return false;
    for (std::uint32_t i = begin; i < end; ++i) {
      for (std::uint32_t left = word_at(i); left != 0; left &= left - 1) {
        ends[ones++] =
            static_cast<std::uint16_t>(i * 32 + static_cast<std::uint32_t>(__ffs(static_cast<int>(left))) - 1);
      }
    }
    __syncthreads();
    if ((count == 0 ? 0U : ends[count - 1] + 1U) != unary_bits) return false;
  }
  bool is_good = true;
#pragma unroll
  for (std::uint32_t row = 0; row < kWireRows; ++row) {
    const std::uint32_t i = change_of(row);
    mine[row] = 0;
    if (i < first || i >= changes) continue;
    const std::uint32_t number = i - first;
    std::uint32_t zeros = 0;
    std::uint32_t low = low_word * 32 + number * code.k;
    if (code.rule != wire::Rule::kPacked) {
      const std::uint32_t begin = number == 0 ? 0U : ends[number - 1] + 1U;
      zeros = ends[number] - begin;
      if (code.rule == wire::Rule::kExpGolomb) low += begin - number;  // Zeros of all before.
    }
    if (!wire::is_joinable(code, zeros)) {
      is_good = false;
      continue;
    }
    mine[row] = wire::join_number(code, zeros, block.bits_at(low, wire::low_width(code, zeros)));
  }
  return __syncthreads_and(is_good) != 0;
}

// Loads a block; false, for all threads, if it does not fit its check.
__device__ bool load_words(const std::uint64_t* from, std::uint32_t units, std::uint32_t wanted, BlockWords& block) {
  std::uint64_t check = 0;
  for (std::uint32_t i = threadIdx.x; i < units; i += kWireThreads) {
    const std::uint64_t unit = from[i];
    block.words[2 * i] = static_cast<std::uint32_t>(unit);
    block.words[2 * i + 1] = static_cast<std::uint32_t>(unit >> 32);
    check += wire::check_part(i, unit);
  }
  if (threadIdx.x < 4) block.words[2 * units + threadIdx.x] = 0;
  return wire::fold_check(combine_all(check, Plus{})) == wanted;  // And all words are there.
}

// Turns gaps into distances from the block's first index; false, for all threads, if one reaches `limit`.
__device__ bool add_gaps(std::uint64_t (&mine)[kWireRows], std::uint32_t changes, std::uint64_t limit) {
#pragma unroll
  for (std::uint32_t row = 0; row < kWireRows; ++row) {
    const std::uint32_t i = change_of(row);
    mine[row] = i == 0 || i >= changes ? 0 : min(mine[row] + 1, PlusUpTo::kMost);
  }
  scan_changes(mine, PlusUpTo{});
  bool is_good = true;
#pragma unroll
  for (std::uint32_t row = 0; row < kWireRows; ++row) {
    if (change_of(row) < changes) is_good = is_good && mine[row] < limit;
  }
  return __syncthreads_and(is_good) != 0;
}

// Writes a block's indices and values; false, for all threads, if a value is none.
template <class Index>
__device__ bool put_changes(const Job& job, const BlockOwner& owner, bool has_steps, std::uint64_t first_index,
                            const std::uint64_t (&distances)[kWireRows], const std::uint64_t (&numbers)[kWireRows],
                            std::uint64_t& content) {
  const std::uint16_t* base = job.tensors[owner.tensor].base;
  const std::uint64_t key = wire::content_key(owner.tensor);
  bool is_good = true;
#pragma unroll
  for (std::uint32_t row = 0; row < kWireRows; ++row) {
    const std::uint32_t i = change_of(row);
    if (i >= owner.changes) continue;
    const std::uint64_t index = first_index + distances[row];
    auto value = static_cast<std::uint32_t>(numbers[row]);
    if (has_steps) {
      is_good = is_good && numbers[row] < 0x10000;
      value = wire::step_from(base[index], value & 0xFFFFU);
    }
    content += wire::content_part(key, index, value);
    if constexpr (sizeof(Index) == 4) job.output.indices32[owner.first + i] = static_cast<std::int32_t>(index);
    if constexpr (sizeof(Index) == 8) job.output.indices64[owner.first + i] = static_cast<std::int64_t>(index);
    if (job.output.values16 != nullptr) {
      job.output.values16[owner.first + i] = static_cast<std::uint16_t>(value);
    } else {
      job.output.values32[owner.first + i] = value;
    }
  }
  return __syncthreads_and(is_good) != 0;
}

// Decodes one block; what is wrong with it, or 0xFF. All threads return the same.
template <class Index>
__device__ std::uint32_t decode_block(const Job& job, std::uint64_t block, std::uint64_t blocks,
                                      const BlockOwner& owner, BlockWords& words, std::uint64_t& content) {
  const std::uint64_t* row = job.message + job.ahead(block);
  const bool has_next = block + 1 < blocks;
  const std::uint64_t first_index = row[0];
  const std::uint64_t begin = row[1] & 0xFFFFFFFFU;
  const std::uint64_t next = has_next ? row[3] & 0xFFFFFFFFU : job.message[5];
  const std::uint64_t elements = job.tensors[owner.tensor].elements;
  const std::uint64_t limit = owner.is_last ? elements : min(row[2], elements);
  if ((block == 0 && begin != 0) || next <= begin || next - begin > wire::kMostBlockUnits || next > job.message[5] ||
      first_index >= limit) {
    return static_cast<std::uint32_t>(WireReason::kRow);
  }
  const auto units = static_cast<std::uint32_t>(next - begin);
  if (!load_words(job.message + job.ahead(blocks) + begin, units, static_cast<std::uint32_t>(row[1] >> 32), words)) {
    return static_cast<std::uint32_t>(WireReason::kBlockCheck);
  }
  const wire::BlockHead head = wire::unpack_head(words.words[0] | (std::uint64_t{words.words[1]} << 32));
  const wire::Form form = job.has_steps() ? wire::Form::kSteps : wire::Form::kPlain;
  if (!wire::is_valid_head(head, owner.changes, form, job.value_bytes())) {
    return static_cast<std::uint32_t>(WireReason::kCodes);
  }
  const wire::BlockParts parts = wire::parts_of(head, owner.changes);
  if (parts.units() != units) return static_cast<std::uint32_t>(WireReason::kCodes);
  std::uint64_t distances[kWireRows];
  std::uint64_t numbers[kWireRows];
  if (!read_list(words, head.gaps, head.gap_unary, parts.gap_unary, parts.gap_low, 1, owner.changes, distances)) {
    return static_cast<std::uint32_t>(WireReason::kNumbers);
  }
  if (!add_gaps(distances, owner.changes, limit - first_index)) {
    return static_cast<std::uint32_t>(WireReason::kBehindEnd);
  }
  if (!read_list(words, head.values, head.value_unary, parts.value_unary, parts.value_low, 0, owner.changes, numbers) ||
      !put_changes<Index>(job, owner, head.has_steps, first_index, distances, numbers, content)) {
    return static_cast<std::uint32_t>(WireReason::kNumbers);
  }
  return 0xFF;
}

template <class Index>
__global__ void __launch_bounds__(kWireThreads) decode_kernel(const __grid_constant__ Job job) {
  __shared__ BlockWords words;
  const std::uint64_t blocks = job.sums->blocks;
  std::uint64_t content = 0;
  std::uint64_t rows = 0;
  for (std::uint64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const BlockOwner owner = owner_of(block, job.starts, job.output.offsets, job.count);
    __syncthreads();  // The block before has been read.
    const std::uint32_t wrong = decode_block<Index>(job, block, blocks, owner, words, content);
    if (threadIdx.x != 0) continue;
    if (wrong != 0xFF) report(&job.sums->worst, block, static_cast<WireReason>(wrong));
    const std::uint64_t place = job.ahead(block);
    rows += wire::check_part(place, job.message[place]) + wire::check_part(place + 1, job.message[place + 1]);
  }
  content = combine_all(content, Plus{});
  if (threadIdx.x != 0) return;
  add_to(&job.sums->content, content);
  add_to(&job.sums->rows, rows);
}

__global__ void __launch_bounds__(kWireThreads) compare_kernel(const __grid_constant__ Job job) {
  const WireSums sums = *job.sums;
  std::uint64_t worst = sums.worst;
  std::uint64_t check = 0;
  // Only a message that was opened has all of these units.
  if (worst == kWireGood || (worst >> 8) != kNoBlock) {
    const std::uint64_t behind = job.ahead(0);
    for (std::uint64_t i = threadIdx.x; i < behind; i += kWireThreads) {
      if (i != wire::kHeaderUnits - 1) check += wire::check_part(i, job.message[i]);
    }
    check = combine_all(check, Plus{}) + sums.rows;
    if (check != job.message[wire::kHeaderUnits - 1])
      worst = min(worst, wire_report(kNoBlock, WireReason::kHeaderCheck));
    if (sums.content != job.message[6]) worst = min(worst, wire_report(kNoBlock, WireReason::kContent));
  }
  if (threadIdx.x == 0) {
    *job.outcome = {worst, job.units, worst == kWireGood ? job.message[3] : 0, worst == kWireGood ? sums.blocks : 0};
  }
}

Status check_output(const std::uint64_t* message, std::uint64_t units, const WireTensor* tensors, std::uint32_t count,
                    const WireDecodeOutput& output) {
  const bool has_indices = (output.indices32 != nullptr) != (output.indices64 != nullptr);
  const bool has_values = (output.values16 != nullptr) != (output.values32 != nullptr);
  if (!has_indices || !has_values) return Error{Errc::kInvalid, "one list of indices and one of values, please"};
  if (output.offsets == nullptr || (count > 0 && tensors == nullptr) || (units > 0 && message == nullptr)) {
    return Error{Errc::kInvalid, "a message, tensors and room for their offsets, please"};
  }
  return Unit{};
}

}  // namespace

std::size_t wire_decode_workspace(std::uint32_t tensors) { return 8 * (kSumsUnits + std::size_t{tensors} + 1); }

Status wire_decode(const std::uint64_t* message, std::uint64_t units, const WireTensor* tensors, std::uint32_t count,
                   const WireDecodeOutput& output, void* workspace, WireOutcome* outcome, Stream stream) {
  AREAL_TRY(check_output(message, units, tensors, count, output));
  auto* sums = static_cast<WireSums*>(workspace);
  auto* starts = static_cast<std::uint64_t*>(workspace) + kSumsUnits;
  const Job job{message, units, tensors, count, output, sums, starts, outcome};
  cudaMemsetAsync(workspace, 0, sizeof(WireSums), stream);
  open_kernel<<<1, kLanes, 0, stream>>>(job);
  const std::uint32_t grid = wire_grid(output.most / wire::kBlockChanges + count);
  if (output.indices32 != nullptr) {
    decode_kernel<std::int32_t><<<grid, kWireThreads, 0, stream>>>(job);
  } else {
    decode_kernel<std::int64_t><<<grid, kWireThreads, 0, stream>>>(job);
  }
  compare_kernel<<<1, kWireThreads, 0, stream>>>(job);
  return last_error("wire decoding");
}

}  // namespace areal::delta::cuda
