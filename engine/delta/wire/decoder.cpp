#include "engine/delta/wire/decoder.h"

#include "engine/base/check.h"
#include "engine/delta/wire/bf16_step.h"

namespace areal::delta::wire {
namespace {

// Values far apart are asked for so many changes before they are needed.
constexpr std::size_t kAhead = 48;

// Indices of a block; false if one is not below `limit`. REQUIRES: first < limit.
template <class Index>
bool place_indices(const BlockNumbers& numbers, std::uint64_t first, std::uint64_t limit, std::span<Index> indices) {
  std::uint64_t index = first;
  indices[0] = static_cast<Index>(index);
  bool is_good = true;
  for (std::size_t i = 1; i < indices.size(); ++i) {
    // Of a bad block only the flag is used: index + gap + 1 is below 2^64, and wraps only after it was outside.
    is_good &= numbers.gaps[i - 1] < limit - 1 - index;
    index += numbers.gaps[i - 1] + 1;
    indices[i] = static_cast<Index>(index);
  }
  return is_good;
}

template <class Index, class Value>
const char* place_values(const BlockNumbers& numbers, bool has_steps, std::span<const std::uint16_t> base,
                         std::span<const Index> indices, std::span<Value> values) {
  if (!has_steps) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Value>(numbers.values[i]);
    return nullptr;
  }
  std::uint32_t all = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i + kAhead < values.size()) __builtin_prefetch(&base[static_cast<std::uint64_t>(indices[i + kAhead])]);
    all |= numbers.steps[i];
    const std::uint32_t before = base[static_cast<std::uint64_t>(indices[i])];
    values[i] = static_cast<Value>(step_from(before, numbers.steps[i] & 0xFFFFU));
  }
  return all > 0xFFFFU ? "has a step of more than 16 bits" : nullptr;
}

}  // namespace

template <class Index, class Value>
Result<std::uint64_t> decode_blocks(const Message& message, std::span<const TensorBase> bases, std::uint64_t first,
                                    std::uint64_t last, Path path, const ChangeRoom<Index, Value>& room) {
  AREAL_CHECK(room.indices.size() == message.header().changes && room.values.size() == message.header().changes);
  AREAL_CHECK(sizeof(Value) == message.value_bytes());
  const ValueKind kind{message.form(), message.value_bytes()};
  BlockNumbers numbers;
  std::vector<std::uint64_t> units;
  std::uint64_t content = 0;
  for (std::uint64_t block = first; block < last; ++block) {
    const BlockPlace place = place_of(message.starts(), block);
    const TensorBase& base = bases[place.tensor];
    AREAL_TRY(message.take_block(block, units));
    numbers.changes = place.changes;
    bool has_steps = false;
    const char* wrong = read_block(units, kind, path, numbers, has_steps);
    if (wrong != nullptr) return block_error(block, place, wrong);
    const std::span<Index> indices = room.indices.subspan(place.first_change, place.changes);
    const std::span<Value> values = room.values.subspan(place.first_change, place.changes);
    const std::uint64_t limit = message.index_limit(block, place.tensor, base.elements);
    if (!place_indices(numbers, message.row(block).first_index, limit, indices)) {
      return block_error(block, place, "has an index behind what comes after it");
    }
    wrong = place_values<Index, Value>(numbers, has_steps, base.values, indices, values);
    if (wrong != nullptr) return block_error(block, place, wrong);
    const std::uint64_t key = content_key(place.tensor);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      content += content_part(key, static_cast<std::uint64_t>(indices[i]), values[i]);
    }
  }
  return content;
}

Status fits(const Message& message, std::span<const TensorBase> bases, std::uint32_t index_bytes,
            std::uint32_t value_bytes) {
  if (message.value_bytes() != value_bytes) return Error{Errc::kInvalid, "coded delta: values of another width"};
  for (std::size_t t = 0; t < bases.size(); ++t) {
    if (message.starts().change[t] == message.starts().change[t + 1]) continue;
    if (index_bytes < 8 && bases[t].elements > kNarrowElements) {
      return Error{Errc::kInvalid, "coded delta: a tensor of more than 2^31 elements, and indices of 32 bits"};
    }
    if (message.form() == Form::kSteps && bases[t].values.size() != bases[t].elements) {
      return Error{Errc::kInvalid, "coded delta: steps, and the receiver's values are not all there"};
    }
  }
  return Unit{};
}

Status check_content(const Message& message, std::uint64_t content) {
  if (content == message.header().content) return Unit{};
  return Error{Errc::kCorrupt,
               "coded delta: the new values are not those that were sent: the receiver holds another base"};
}

template <class Index, class Value>
Result<DecodedChanges<Index, Value>> decode(std::span<const std::uint8_t> bytes, std::span<const TensorBase> bases,
                                            Path path) {
  const Result<Message> message = Message::open(bytes, elements_of(bases));
  if (!message) return message.error();
  AREAL_TRY(fits(*message, bases, sizeof(Index), sizeof(Value)));
  DecodedChanges<Index, Value> decoded;
  decoded.offsets = message->starts().change;
  decoded.indices.resize(message->header().changes);
  decoded.values.resize(message->header().changes);
  const ChangeRoom<Index, Value> room{decoded.indices, decoded.values};
  const Result<std::uint64_t> content = decode_blocks(*message, bases, 0, message->header().blocks, path, room);
  if (!content) return content.error();
  AREAL_TRY(check_content(*message, *content));
  return decoded;
}

std::vector<std::uint64_t> elements_of(std::span<const TensorBase> bases) {
  std::vector<std::uint64_t> elements;
  elements.reserve(bases.size());
  for (const TensorBase& base : bases) elements.push_back(base.elements);
  return elements;
}

#define AREAL_DECODE(Index, Value)                                                                         \
  template Result<std::uint64_t> decode_blocks(const Message&, std::span<const TensorBase>, std::uint64_t, \
                                               std::uint64_t, Path, const ChangeRoom<Index, Value>&);      \
  template Result<DecodedChanges<Index, Value>> decode(std::span<const std::uint8_t>, std::span<const TensorBase>, Path)
AREAL_DECODE(std::int32_t, std::uint16_t);
AREAL_DECODE(std::int32_t, std::uint32_t);
AREAL_DECODE(std::int64_t, std::uint16_t);
AREAL_DECODE(std::int64_t, std::uint32_t);
#undef AREAL_DECODE

}  // namespace areal::delta::wire
