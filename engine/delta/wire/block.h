// One block as numbers, and its bits: written and read in two ways that must not differ.
//
// kReference goes bit by bit and says what the format is; kFast is what everybody uses. Pure functions; safe on any
// thread.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/delta/wire/format.h"

namespace areal::delta::wire {

enum class Path : std::uint8_t { kFast, kReference };

// `changes` of the arrays' elements count, one fewer of the gaps.
struct BlockNumbers {  // NOLINT(cppcoreguidelines-pro-type-member-init): lists are set up to `changes`.
  std::uint32_t changes = 0;
  std::array<std::uint64_t, kBlockChanges> gaps;   // Below 2^62, and their sum.
  std::array<std::uint32_t, kBlockChanges> steps;  // Step numbers, below 2^16, if there is a base.
  std::array<std::uint32_t, kBlockChanges> values;
};

struct ValueKind {
  Form form = Form::kPlain;
  std::uint32_t value_bytes = 2;
};

// Appends the block to `units`, and reads nothing of it. REQUIRES: at least one change.
void write_block(const BlockNumbers& numbers, ValueKind kind, Path path, std::vector<std::uint64_t>& units);

// Fills in gaps, and steps or values; `has_steps` says which. Null, or what is wrong with the block, which may be
// anything. Numbers are below 2^63 (gaps) and 2^32 (values). REQUIRES: numbers.changes is at least one.
const char* read_block(std::span<const std::uint64_t> units, ValueKind kind, Path path, BlockNumbers& numbers,
                       bool& has_steps);

// Reasons that both paths have.
inline constexpr const char* kTooLarge = "has a number that is too large";
inline constexpr const char* kTooFew = "has fewer numbers than changes";
inline constexpr const char* kTooMany = "has more numbers than changes";

void write_block_fast(const BlockNumbers& numbers, ValueKind kind, std::vector<std::uint64_t>& units);
void write_block_reference(const BlockNumbers& numbers, ValueKind kind, std::vector<std::uint64_t>& units);
const char* read_lists_fast(std::span<const std::uint64_t> units, const BlockHead& head, BlockNumbers& numbers);
const char* read_lists_reference(std::span<const std::uint64_t> units, const BlockHead& head, BlockNumbers& numbers);

}  // namespace areal::delta::wire
