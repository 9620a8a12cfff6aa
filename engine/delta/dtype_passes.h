// Which wire dtypes a delta goes through, in which order, and which operations belong to each pass.
//
// The union of all ranks' wire dtypes, ascending by name, is fixed once at group set-up; every rank enters every pass,
// also with no operation of its own (spec/transfer.md 1.11, INV-DELTA-DTYPE-ROUNDS). Pure functions.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "engine/base/dtype.h"
#include "engine/base/result.h"

namespace areal::delta {

// From one list a rank, in any order. Refuses a union without any dtype.
Result<std::vector<DType>> wire_dtype_union(std::span<const std::vector<DType>> by_rank);

struct DTypePass {
  DType dtype = DType::kBf16;
  std::vector<std::size_t> ops;  // Positions in the list of wire dtypes, ascending.
};

// One pass for each agreed dtype, in that order. `wires` has the receive dtype of each operation of one rank. Refuses
// an operation whose dtype was not agreed: it would never be sent.
Result<std::vector<DTypePass>> dtype_passes(std::span<const DType> agreed, std::span<const DType> wires);

}  // namespace areal::delta
