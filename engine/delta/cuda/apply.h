// Puts changes into weights in place, or whole tensors, for many tensors in one launch; and takes the values of given
// indices out of weights. Which of the two is faster for a tensor, apply_form() in apply_rule.h says; the caller
// chooses.
//
// Lists are as the detector writes them: tensor t has entries offsets[t] .. offsets[t + 1] - 1, indices count from the
// start of their tensor. Indices may be in any order, each at most once in a tensor: of two values for one element
// either can win. Sorted ones are faster. All pointers are device pointers with their element's alignment. Functions
// may be called from any host thread.
//
// REQUIRES of every list: offsets begin at 0 and ascend. They may end beyond `most`, as those of a detector whose
// output was too small: what the lists have no room for is refused, and counted.
#pragma once
#include <cstdint>

#include "engine/base/result.h"
#include "engine/delta/cuda/chunks.h"
#include "engine/delta/cuda/stream.h"

namespace areal::delta::cuda {

struct ApplyTarget {
  std::uint16_t* weights = nullptr;  // bf16 bits.
  std::uint64_t elements = 0;
};

struct PatchList {
  const std::int32_t* indices32 = nullptr;  // One of the two.
  const std::int64_t* indices64 = nullptr;
  const std::uint16_t* values = nullptr;
  const std::uint64_t* offsets = nullptr;  // tensors + 1.
  std::uint32_t tensors = 0;
  std::uint64_t most = 0;  // Entries that the lists have room for; launches are sized by it.
};

// weights[index] = value for every entry. Entries outside their tensor or beyond the lists are left out and counted in
// *refused, which is added to: whoever needs all or nothing calls count_refused() first and waits.
Status apply_sparse(const ApplyTarget* targets, const PatchList& patch, std::uint64_t* refused, Stream stream);

// Adds to *refused the entries that are outside their tensor, that do not ascend within it, or are beyond the lists.
Status count_refused(const ApplyTarget* targets, const PatchList& patch, std::uint64_t* refused, Stream stream);

struct DenseCopy {
  const std::uint16_t* source = nullptr;
  std::uint16_t* target = nullptr;
  std::uint64_t elements = 0;
  std::uint64_t first_chunk = 0;  // By number_chunks().
};

// All of `copies`, device memory, which have `chunks` chunks; the regions must not overlap.
Status copy_dense(const DenseCopy* copies, std::uint32_t count, std::uint64_t chunks, Stream stream);

// values[i] = bf16 of sources[t][index of entry i], for entries whose index is inside; others get 0 and are counted;
// entries beyond the lists are counted.
struct GatherSource {
  const float* weights = nullptr;  // One of the two: fp32 is rounded as to_bf16() does.
  const std::uint16_t* bf16 = nullptr;
  std::uint64_t elements = 0;
};
Status gather_values(const GatherSource* sources, const PatchList& list, std::uint16_t* values, std::uint64_t* refused,
                     Stream stream);

}  // namespace areal::delta::cuda
