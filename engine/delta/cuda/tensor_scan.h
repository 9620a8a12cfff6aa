// Passes over whole tensors on a device: digests of their elements, fingerprints of their bytes, elements that are not
// finite. One launch for many tensors; results are whole numbers whose sums do not depend on the order, so they are
// equal to the CPU's (element_digest.h, fingerprint.h) and from run to run.
//
// Pointers are device pointers with their element's alignment. Functions may be called from any host thread.
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/base/digest.h"
#include "engine/base/result.h"
#include "engine/delta/cuda/chunks.h"
#include "engine/delta/cuda/stream.h"

namespace areal::delta::cuda {

// A contiguous part of a tensor: elements first_index .. first_index + elements - 1 of it.
struct TensorPiece {
  const void* data = nullptr;
  std::uint64_t elements = 0;
  std::uint64_t first_chunk = 0;  // By number_chunks().
  std::uint64_t first_index = 0;
  std::uint32_t tensor = 0;  // As element_key() takes it.
  std::uint32_t unused = 0;
};

struct PieceList {
  const TensorPiece* pieces = nullptr;
  std::uint32_t count = 0;
  std::uint64_t chunks = 0;         // As number_chunks() returned.
  std::uint32_t element_bytes = 2;  // 2 or 4.
};

// digests[i]: the sum of element_digest(tensor, first_index + j, bits) over piece i, as ElementSum adds. `scratch`:
// device memory of digest_scratch_bytes(count).
constexpr std::size_t digest_scratch_bytes(std::uint32_t count) { return std::size_t{count} * 32; }
Status digest_pieces(const PieceList& list, void* scratch, Digest128* digests, Stream stream);

// What fingerprint.h computes, without the dtype.
struct DeviceFingerprint {
  std::uint64_t bytes = 0;
  std::uint64_t total = 0;
  std::uint64_t weighted = 0;
  std::uint64_t sampled = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};
Status fingerprint_pieces(const PieceList& list, DeviceFingerprint* prints, Stream stream);

// counts[i]: elements of piece i that are infinite or NaN; bf16 if elements have 2 bytes, else fp32.
Status count_not_finite(const PieceList& list, std::uint64_t* counts, Stream stream);

}  // namespace areal::delta::cuda
