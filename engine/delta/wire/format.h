// The bytes of a coded delta: what stands where, and how damage is noticed.
//
// Units are 64-bit words, little-endian. A message is one header, a row for each tensor, a row for each block, and the
// blocks. A block is at most 1,024 changes of one tensor, coded by itself; all blocks of a tensor but its last are
// full.
//
//   header   8 units: magic; form | value bytes << 32; tensors; changes; blocks; units of all blocks; content; check
//   tensor   2 units: elements; changes
//   block    2 units: index of its first change; begin (unit among those of all blocks) | check << 32
//
// A block's first unit: bits 0-1 rule and 2-7 k of the gaps, 8-9 rule and 10-15 k of the values, bit 16 whether values
// are steps, bits 32-47 and 48-63 how many bits the unary parts of gaps and of values have. Four parts follow, each
// from a 32-bit boundary, filled from the lowest bit: unary and low parts of the gaps (index - index before - 1, of all
// changes but the first), unary and low parts of the values (stream_code.h). A step is bf16_step.h's number for the way
// from the receiver's value to the new one; a value that is no step stands there as it is, packed.
//
// Checks are sums of mixed units, so that any number of threads can add them up: the header's covers header and rows,
// a row's covers its block, and the content covers every (tensor, index, new value), so that a delta applied to another
// base than the sender's is noticed. Against accidents, not against attackers. Pure functions, for hosts and devices.
#pragma once
#include <cstdint>

#include "engine/base/rng.h"
#include "engine/delta/element_digest.h"
#include "engine/delta/host_device.h"
#include "engine/delta/wire/stream_code.h"

namespace areal::delta::wire {

inline constexpr std::uint64_t kMagic = 0x3144574C41455241ULL;  // "AREALWD1".
inline constexpr std::uint32_t kHeaderUnits = 8;
inline constexpr std::uint32_t kTensorUnits = 2;
inline constexpr std::uint32_t kBlockRowUnits = 2;
inline constexpr std::uint32_t kBlockChanges = 1024;
// A block is no longer than with all of its gaps packed into 63 bits and its values into 32, part by part.
inline constexpr std::uint32_t kMostBlockUnits = 1536;
// Begins of blocks are 32-bit numbers.
inline constexpr std::uint64_t kMostUnits = 0xFFFFFFFFULL;

// Whether values are coded against what the receiver holds.
enum class Form : std::uint8_t { kPlain, kSteps };

struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t form_and_bytes = 0;
  std::uint64_t tensors = 0;
  std::uint64_t changes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t units = 0;
  std::uint64_t content = 0;
  std::uint64_t check = 0;
};

struct BlockRow {
  std::uint64_t first_index = 0;
  std::uint32_t begin = 0;
  std::uint32_t check = 0;
};

AREAL_HOST_DEVICE constexpr std::uint64_t row_word(const BlockRow& row) {
  return row.begin | (std::uint64_t{row.check} << 32);
}

AREAL_HOST_DEVICE constexpr std::uint64_t blocks_of(std::uint64_t changes) {
  return changes / kBlockChanges + (changes % kBlockChanges == 0 ? 0 : 1);
}

// Elements that indices of 32 bits reach.
inline constexpr std::uint64_t kNarrowElements = 1ULL << 31;

struct BlockHead {
  StreamCode gaps;
  StreamCode values;
  bool has_steps = false;
  std::uint32_t gap_unary = 0;  // Bits.
  std::uint32_t value_unary = 0;
};

// The shortest code of a list, and the bits that it takes.
struct ChosenCode {
  StreamCode code;
  std::uint64_t unary = 0;
  std::uint64_t low = 0;
};

// Steps, if the form has them and they are shorter than `changes` values as they are.
AREAL_HOST_DEVICE constexpr BlockHead head_of(const ChosenCode& gaps, const ChosenCode& steps, Form form,
                                              std::uint32_t value_bytes, std::uint32_t changes) {
  BlockHead head{gaps.code, {Rule::kPacked, 8 * value_bytes}};
  head.gap_unary = static_cast<std::uint32_t>(gaps.unary);
  if (form == Form::kSteps && steps.unary + steps.low < std::uint64_t{8} * value_bytes * changes) {
    head.has_steps = true;
    head.values = steps.code;
    head.value_unary = static_cast<std::uint32_t>(steps.unary);
  }
  return head;
}

AREAL_HOST_DEVICE constexpr std::uint64_t pack_head(const BlockHead& head) {
  return static_cast<std::uint64_t>(head.gaps.rule) | (std::uint64_t{head.gaps.k} << 2) |
         (static_cast<std::uint64_t>(head.values.rule) << 8) | (std::uint64_t{head.values.k} << 10) |
         (std::uint64_t{head.has_steps} << 16) | (std::uint64_t{head.gap_unary} << 32) |
         (std::uint64_t{head.value_unary} << 48);
}
// Any word gives a head; whether it makes sense is is_valid_head()'s.
AREAL_HOST_DEVICE constexpr BlockHead unpack_head(std::uint64_t unit) {
  const auto bits = [unit](std::uint32_t from, std::uint32_t count) {
    return static_cast<std::uint32_t>((unit >> from) & low_mask(count));
  };
  return {{static_cast<Rule>(bits(0, 2)), bits(2, 6)},
          {static_cast<Rule>(bits(8, 2)), bits(10, 6)},
          bits(16, 1) != 0,
          bits(32, 16),
          bits(48, 16)};
}

// Where the parts of a block begin, in 32-bit words from its first.
struct BlockParts {
  std::uint32_t gap_unary = 2;
  std::uint32_t gap_low = 0;
  std::uint32_t value_unary = 0;
  std::uint32_t value_low = 0;
  std::uint32_t end = 0;

  [[nodiscard]] AREAL_HOST_DEVICE constexpr std::uint32_t units() const { return (end + 1) / 2; }
};

AREAL_HOST_DEVICE constexpr std::uint32_t words_of(std::uint64_t bits) {
  return static_cast<std::uint32_t>((bits + 31) / 32);
}

// REQUIRES: unary bits are 0 for packed lists, and at least as many as there are numbers for others.
AREAL_HOST_DEVICE constexpr BlockParts parts_of(const BlockHead& head, std::uint32_t changes) {
  const auto zeros = [](StreamCode code, std::uint32_t unary, std::uint32_t count) {
    return code.rule == Rule::kPacked ? 0 : unary - count;
  };
  BlockParts parts;
  parts.gap_low = parts.gap_unary + words_of(head.gap_unary);
  parts.value_unary =
      parts.gap_low + words_of(low_bits(head.gaps, changes - 1, zeros(head.gaps, head.gap_unary, changes - 1)));
  parts.value_low = parts.value_unary + words_of(head.value_unary);
  parts.end = parts.value_low + words_of(low_bits(head.values, changes, zeros(head.values, head.value_unary, changes)));
  return parts;
}

// Whether a block of so many changes (at least one) can begin so: what parts_of() requires holds, every number is in
// its range's width, and values have the message's width.
AREAL_HOST_DEVICE constexpr bool is_valid_head(const BlockHead& head, std::uint32_t changes, Form form,
                                               std::uint32_t value_bytes) {
  const auto fits = [](StreamCode code, std::uint32_t unary, std::uint32_t count, std::uint32_t most) {
    if (code.rule > Rule::kExpGolomb || code.k > most) return false;
    return code.rule == Rule::kPacked ? unary == 0 : unary >= count;
  };
  if (!fits(head.gaps, head.gap_unary, changes - 1, 63)) return false;
  if (!head.has_steps)
    return head.values.rule == Rule::kPacked && head.values.k == 8 * value_bytes && head.value_unary == 0;
  return form == Form::kSteps && fits(head.values, head.value_unary, changes, 16);
}

// The part of a check that unit number `place` adds, counted from 0 within what the check covers.
AREAL_HOST_DEVICE constexpr std::uint64_t check_part(std::uint64_t place, std::uint64_t unit) {
  return mix_key((place + 1) * 0xD1342543DE82EF95ULL, unit);
}
AREAL_HOST_DEVICE constexpr std::uint32_t fold_check(std::uint64_t sum) {
  return static_cast<std::uint32_t>(sum ^ (sum >> 32));
}

// What one change adds to the content. `key`: content_key() of its tensor.
AREAL_HOST_DEVICE constexpr std::uint64_t content_key(std::uint64_t tensor) {
  return finalise_word(tensor + kGoldenWord);
}
AREAL_HOST_DEVICE constexpr std::uint64_t content_part(std::uint64_t key, std::uint64_t index, std::uint32_t bits) {
  return mix_key(key + index * 0xD1342543DE82EF95ULL, bits);
}

}  // namespace areal::delta::wire
