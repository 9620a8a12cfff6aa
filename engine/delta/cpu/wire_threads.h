// The wire coding with several threads: each has a run of blocks, and the bytes are those of one.
//
// Functions may be called from any thread; their threads, the caller's among them, have ended when they return.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/delta/wire/decoder.h"
#include "engine/delta/wire/encoder.h"

namespace areal::delta {

// As wire::encode(). REQUIRES: threads > 0. Small deltas take fewer.
Result<std::vector<std::uint8_t>> encode_by_threads(std::span<const wire::TensorChanges> tensors, wire::ValueKind kind,
                                                    std::uint32_t threads);

// As wire::decode(), also in which of several wrong blocks it names. `Index`: int32 or int64; `Value`: 16 or 32 bits.
template <class Index, class Value>
Result<wire::DecodedChanges<Index, Value>> decode_by_threads(std::span<const std::uint8_t> bytes,
                                                             std::span<const wire::TensorBase> bases,
                                                             std::uint32_t threads);

}  // namespace areal::delta
