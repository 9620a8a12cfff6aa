#include <cuda_runtime.h>

#include "engine/delta/cuda/chunk_walk.cuh"
#include "engine/delta/cuda/tensor_scan.h"
#include "engine/delta/element_digest.h"
#include "engine/delta/fingerprint.h"

namespace areal::delta::cuda {
namespace {

constexpr std::uint32_t kThreads = 256;

// Calls act(number of the element, bits) for a part of a chunk's elements, with loads of 16 bytes where they are
// aligned.
template <class Word, class Act>
__device__ void for_words(const Word* words, std::uint32_t elements, const Act& act) {
  constexpr std::uint32_t kUnit = 16 / sizeof(Word);
  const auto place = reinterpret_cast<std::uint64_t>(words);
  const std::uint32_t head = min(elements, static_cast<std::uint32_t>((16 - place % 16) % 16 / sizeof(Word)));
  const std::uint32_t units = (elements - head) / kUnit;
  const auto* from = reinterpret_cast<const uint4*>(words + head);
  for_units<kThreads>(from, units, [&](std::uint32_t i, const uint4& unit) {
    const std::uint32_t first = head + i * kUnit;
    const std::uint32_t quarters[4] = {unit.x, unit.y, unit.z, unit.w};
#pragma unroll
    for (std::uint32_t q = 0; q < 4; ++q) {
      if constexpr (sizeof(Word) == 4) {
        act(first + q, quarters[q]);
      } else {
        act(first + 2 * q, quarters[q] & 0xFFFFU);
        act(first + 2 * q + 1, quarters[q] >> 16);
      }
    }
  });
  if (threadIdx.x < head) act(threadIdx.x, std::uint32_t{words[threadIdx.x]});
  const std::uint32_t tail = head + units * kUnit + threadIdx.x;
  if (tail < elements) act(tail, std::uint32_t{words[tail]});
}

// Four sums of 32-bit parts, so that 64-bit additions can be atomic and lose no carry: a block's sum of a part has at
// most 40 bits, so 2^24 chunks fit, a tensor of 2^38 elements.
template <class Word>
__global__ void __launch_bounds__(kThreads)
    digest_kernel(const __grid_constant__ PieceList list, std::uint64_t* parts) {
  for_chunks(list.pieces, list.count, list.chunks,
             [&](const TensorPiece& piece, std::uint32_t which, std::uint64_t first, std::uint32_t elements) {
               ElementSum sum;
               for_words(static_cast<const Word*>(piece.data) + first, elements,
                         [&](std::uint32_t i, std::uint32_t bits) {
                           sum.add(element_digest(piece.tensor, piece.first_index + first + i, bits));
                         });
               const Digest128 mine = sum.digest();
               const std::uint64_t words[4] = {mine.low & 0xFFFFFFFFU, mine.low >> 32, mine.high & 0xFFFFFFFFU,
                                               mine.high >> 32};
#pragma unroll
               for (std::uint32_t part = 0; part < 4; ++part) {
                 const std::uint64_t total = block_sum(words[part]);
                 if (threadIdx.x == 0) add_to(&parts[std::uint64_t{which} * 4 + part], total);
               }
             });
}

__global__ void __launch_bounds__(kThreads)
    join_parts_kernel(const std::uint64_t* parts, std::uint32_t count, Digest128* digests) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  __extension__ typedef unsigned __int128 Wide;  // NOLINT(modernize-use-using): nvcc knows this form alone
  Wide sum = 0;
  for (std::uint32_t part = 0; part < 4; ++part) sum += Wide{parts[std::uint64_t{i} * 4 + part]} << (32 * part);
  digests[i] = {.high = static_cast<std::uint64_t>(sum >> 64), .low = static_cast<std::uint64_t>(sum)};
}

// Which weight a byte has, for bytes of one chunk: 32-bit numbers from the chunk's start on.
struct Bins {
  std::uint64_t first_bin;  // Of the chunk's first byte.
  std::uint64_t inside;     // Of that bin, bytes in front of the chunk.
  std::uint64_t width;
  std::uint64_t count;

  [[nodiscard]] __device__ std::uint64_t weight(std::uint32_t byte) const {
    const std::uint64_t from_bin = inside + byte;
    // A bin of 2^31 bytes and more is not left within a chunk more than once.
    const std::uint64_t further = width >= (1ULL << 31)
                                      ? (from_bin >= width ? 1 : 0)
                                      : static_cast<std::uint32_t>(from_bin) / static_cast<std::uint32_t>(width);
    return min(first_bin + further, count) + 1;
  }
};

__device__ Bins bins_at(std::uint64_t bytes, std::uint64_t first_byte) {
  const std::uint64_t count = min(kMaxBins, bytes);
  const std::uint64_t width = bytes / count;
  const std::uint64_t bin = first_byte / width;
  return {bin, first_byte - bin * width, width, count};
}

__device__ void sample(const std::uint8_t* bytes, std::uint64_t count, DeviceFingerprint& print) {
  const std::uint64_t samples = min(kMaxSamples, count);
  const std::uint64_t steps = max(samples, std::uint64_t{2}) - 1;
  if (threadIdx.x < samples) {
    add_to(&print.sampled, (threadIdx.x + 1) * std::uint64_t{bytes[threadIdx.x * (count - 1) / steps]});
  }
  if (threadIdx.x != 0) return;
  print.bytes = count;
  print.first = bytes[0];
  print.last = bytes[count - 1];
}

template <class Word>
__global__ void __launch_bounds__(kThreads)
    fingerprint_kernel(const __grid_constant__ PieceList list, DeviceFingerprint* prints) {
  for_chunks(list.pieces, list.count, list.chunks,
             [&](const TensorPiece& piece, std::uint32_t which, std::uint64_t first, std::uint32_t elements) {
               const std::uint64_t bytes = piece.elements * sizeof(Word);
               const Bins bins = bins_at(bytes, first * sizeof(Word));
               std::uint64_t total = 0;
               std::uint64_t weighted = 0;
               for_words(static_cast<const Word*>(piece.data) + first, elements,
                         [&](std::uint32_t i, std::uint32_t word) {
                           const std::uint32_t byte = i * sizeof(Word);
                           const std::uint64_t weight = bins.weight(byte);
                           const std::uint32_t sum = __dp4a(word, 0x01010101U, 0U);
                           total += sum;
                           weighted += sum * weight;
                           if (bins.weight(byte + sizeof(Word) - 1) == weight) return;
                           for (std::uint32_t b = 1; b < sizeof(Word); ++b) {
                             weighted += (word >> (8 * b) & 0xFFU) * (bins.weight(byte + b) - weight);
                           }
                         });
               total = block_sum(total);
               weighted = block_sum(weighted);
               if (threadIdx.x == 0) add_to(&prints[which].total, total);
               if (threadIdx.x == 0) add_to(&prints[which].weighted, weighted);
               if (first == 0) sample(static_cast<const std::uint8_t*>(piece.data), bytes, prints[which]);
             });
}

template <class Word>
__global__ void __launch_bounds__(kThreads)
    not_finite_kernel(const __grid_constant__ PieceList list, std::uint64_t* counts) {
  constexpr std::uint32_t kExponent = sizeof(Word) == 4 ? 0x7F800000U : 0x7F80U;
  for_chunks(list.pieces, list.count, list.chunks,
             [&](const TensorPiece& piece, std::uint32_t which, std::uint64_t first, std::uint32_t elements) {
               std::uint32_t found = 0;
               for_words(static_cast<const Word*>(piece.data) + first, elements,
                         [&](std::uint32_t /*i*/, std::uint32_t word) {
                           if ((word & kExponent) == kExponent) ++found;
                         });
               if (__syncthreads_or(found != 0) == 0) return;
               const std::uint32_t total = block_sum(found);
               if (threadIdx.x == 0) add_to(&counts[which], total);
             });
}

Status check_pieces(const PieceList& list) {
  if (list.element_bytes == 2 || list.element_bytes == 4) return Unit{};
  return Error{Errc::kInvalid, "elements of 2 or 4 bytes, please"};
}

}  // namespace

Status digest_pieces(const PieceList& list, void* scratch, Digest128* digests, Stream stream) {
  AREAL_TRY(check_pieces(list));
  if (list.count == 0) return Unit{};
  auto* parts = static_cast<std::uint64_t*>(scratch);
  cudaMemsetAsync(parts, 0, digest_scratch_bytes(list.count), stream);
  const std::uint32_t blocks = blocks_for(list.chunks, 1);
  if (list.element_bytes == 2) digest_kernel<std::uint16_t><<<blocks, kThreads, 0, stream>>>(list, parts);
  if (list.element_bytes == 4) digest_kernel<std::uint32_t><<<blocks, kThreads, 0, stream>>>(list, parts);
  join_parts_kernel<<<list.count / kThreads + 1, kThreads, 0, stream>>>(parts, list.count, digests);
  return last_error("digest of tensors");
}

Status fingerprint_pieces(const PieceList& list, DeviceFingerprint* prints, Stream stream) {
  AREAL_TRY(check_pieces(list));
  if (list.count == 0) return Unit{};
  cudaMemsetAsync(prints, 0, list.count * sizeof(DeviceFingerprint), stream);
  const std::uint32_t blocks = blocks_for(list.chunks, 1);
  if (list.element_bytes == 2) fingerprint_kernel<std::uint16_t><<<blocks, kThreads, 0, stream>>>(list, prints);
  if (list.element_bytes == 4) fingerprint_kernel<std::uint32_t><<<blocks, kThreads, 0, stream>>>(list, prints);
  return last_error("fingerprints of tensors");
}

Status count_not_finite(const PieceList& list, std::uint64_t* counts, Stream stream) {
  AREAL_TRY(check_pieces(list));
  if (list.count == 0) return Unit{};
  cudaMemsetAsync(counts, 0, list.count * sizeof(std::uint64_t), stream);
  const std::uint32_t blocks = blocks_for(list.chunks, 1);
  if (list.element_bytes == 2) not_finite_kernel<std::uint16_t><<<blocks, kThreads, 0, stream>>>(list, counts);
  if (list.element_bytes == 4) not_finite_kernel<std::uint32_t><<<blocks, kThreads, 0, stream>>>(list, counts);
  return last_error("scan for what is not finite");
}

}  // namespace areal::delta::cuda
