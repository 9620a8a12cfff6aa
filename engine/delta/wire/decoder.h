// Turns a coded delta into indices and values again, or says what is wrong with it and where.
//
// Reads and writes nothing outside its arguments, whatever the bytes are. What it wrote of a message that it then
// refuses is worth nothing: apply only what was decoded as a whole. Parts may be decoded on any thread.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/result.h"
#include "engine/delta/wire/block.h"
#include "engine/delta/wire/message.h"

namespace areal::delta::wire {

// The receiver's tensors: their sizes, and all of their bf16 values for the form kSteps.
struct TensorBase {
  std::uint64_t elements = 0;
  std::span<const std::uint16_t> values;
};

// `Index`: int32 or int64. `Value`: 16 or 32 bits, as the message's. Room for all changes, in the message's order.
template <class Index, class Value>
struct ChangeRoom {
  std::span<Index> indices;
  std::span<Value> values;
};

// Decodes blocks first .. last - 1 to where they belong in `room`; returns what they add to the content. Refuses blocks
// that do not fit their check, that are not what the format says, or whose indices leave the tensor. REQUIRES: fits(),
// and room for all changes of the message.
template <class Index, class Value>
Result<std::uint64_t> decode_blocks(const Message& message, std::span<const TensorBase> bases, std::uint64_t first,
                                    std::uint64_t last, Path path, const ChangeRoom<Index, Value>& room);

// Refuses values of another width, steps without the base of every tensor that changes, and indices that `index_bytes`
// (4 or 8) are too few for.
Status fits(const Message& message, std::span<const TensorBase> bases, std::uint32_t index_bytes,
            std::uint32_t value_bytes);
// Refuses another content than the message's: its base is not the receiver's.
Status check_content(const Message& message, std::uint64_t content);

// Tensor t has changes offsets[t] .. offsets[t + 1] - 1.
template <class Index, class Value>
struct DecodedChanges {
  std::vector<Index> indices;
  std::vector<Value> values;
  std::vector<std::uint64_t> offsets;
};

// All of it on this thread. Refuses what Message::open() and all of the above refuse; allocates no more than the bytes
// that are there prove.
template <class Index, class Value>
Result<DecodedChanges<Index, Value>> decode(std::span<const std::uint8_t> bytes, std::span<const TensorBase> bases,
                                            Path path = Path::kFast);

std::vector<std::uint64_t> elements_of(std::span<const TensorBase> bases);

}  // namespace areal::delta::wire
