// The block's format bit by bit: what the fast path and devices must equal.
#include <algorithm>

#include "engine/delta/wire/block.h"

namespace areal::delta::wire {
namespace {

template <class Numbers>
ChosenCode choose(const Numbers& numbers, std::uint32_t count) {
  StreamSums sums{.count = count};
  for (std::uint32_t i = 0; i < count; ++i) {
    sums.total += numbers[i];
    sums.lengths += bit_length(numbers[i]);
    sums.most = std::max<std::uint64_t>(sums.most, numbers[i]);
  }
  ChosenCode best;
  for (std::uint32_t candidate = 0; candidate < kCandidates; ++candidate) {
    const StreamCode code = candidate_code(sums, candidate);
    std::uint64_t zeros = 0;
    for (std::uint32_t i = 0; i < count; ++i) zeros += zeros_of(code, numbers[i]);
    const ChosenCode now{code, unary_bits(code, count, zeros), low_bits(code, count, zeros)};
    if (candidate == 0 || now.unary + now.low < best.unary + best.low) best = now;
  }
  return best;
}

void put_bit(std::span<std::uint64_t> units, std::uint64_t place, std::uint64_t bit) {
  units[place / 64] |= (bit & 1U) << (place % 64);
}

std::uint64_t get_bit(std::span<const std::uint64_t> units, std::uint64_t place) {
  return (units[place / 64] >> (place % 64)) & 1U;
}

// A list's two parts begin at these words.
struct Place {
  std::uint32_t unary = 0;
  std::uint32_t low = 0;
};

template <class Numbers>
void write_list(const Numbers& numbers, std::uint32_t count, StreamCode code, Place place,
                std::span<std::uint64_t> units) {
  std::uint64_t unary = std::uint64_t{place.unary} * 32;
  std::uint64_t low = std::uint64_t{place.low} * 32;
  for (std::uint32_t i = 0; i < count; ++i) {
    const SplitNumber split = split_number(code, numbers[i]);
    if (code.rule != Rule::kPacked) {
      unary += split.zeros;
      put_bit(units, unary++, 1);
    }
    for (std::uint32_t bit = 0; bit < split.width; ++bit) put_bit(units, low++, split.low >> bit);
  }
}

// Null if a unary part has `count` 1 bits and ends with one: then low parts have all the bits that its numbers ask for.
const char* wrong_unary(std::span<const std::uint64_t> units, std::uint64_t begin, std::uint64_t end,
                        std::uint32_t count) {
  std::uint64_t ones = 0;
  for (std::uint64_t place = begin; place < end; ++place) ones += get_bit(units, place);
  if (ones < count) return kTooFew;
  return ones > count || (begin < end && get_bit(units, end - 1) == 0) ? kTooMany : nullptr;
}

template <class Numbers>
const char* read_list(std::span<const std::uint64_t> units, std::uint32_t count, StreamCode code, Place place,
                      std::uint32_t unary_bits, Numbers& numbers) {
  std::uint64_t unary = std::uint64_t{place.unary} * 32;
  if (code.rule != Rule::kPacked) {
    if (const char* wrong = wrong_unary(units, unary, unary + unary_bits, count); wrong != nullptr) return wrong;
  }
  std::uint64_t low = std::uint64_t{place.low} * 32;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t zeros = 0;
    if (code.rule != Rule::kPacked) {
      while (get_bit(units, unary) == 0) ++unary, ++zeros;
      ++unary;
    }
    if (!is_joinable(code, zeros)) return kTooLarge;
    const std::uint32_t width = low_width(code, zeros);
    std::uint64_t bits = 0;
    for (std::uint32_t bit = 0; bit < width; ++bit) bits |= get_bit(units, low++) << bit;
    numbers[i] = static_cast<typename Numbers::value_type>(join_number(code, zeros, bits));
    if (numbers[i] != join_number(code, zeros, bits)) return kTooLarge;
  }
  return nullptr;
}

}  // namespace

void write_block_reference(const BlockNumbers& numbers, ValueKind kind, std::vector<std::uint64_t>& units) {
  const std::uint32_t changes = numbers.changes;
  const ChosenCode gaps = choose(numbers.gaps, changes - 1);
  const BlockHead head = head_of(gaps, kind.form == Form::kSteps ? choose(numbers.steps, changes) : ChosenCode{},
                                 kind.form, kind.value_bytes, changes);
  const BlockParts parts = parts_of(head, changes);
  const std::size_t begin = units.size();
  units.resize(begin + parts.units(), 0);
  const std::span<std::uint64_t> block = std::span(units).subspan(begin);
  block[0] = pack_head(head);
  write_list(numbers.gaps, changes - 1, head.gaps, {parts.gap_unary, parts.gap_low}, block);
  write_list(head.has_steps ? numbers.steps : numbers.values, changes, head.values,
             {parts.value_unary, parts.value_low}, block);
}

const char* read_lists_reference(std::span<const std::uint64_t> units, const BlockHead& head, BlockNumbers& numbers) {
  const BlockParts parts = parts_of(head, numbers.changes);
  const char* wrong =
      read_list(units, numbers.changes - 1, head.gaps, {parts.gap_unary, parts.gap_low}, head.gap_unary, numbers.gaps);
  if (wrong != nullptr) return wrong;
  return read_list(units, numbers.changes, head.values, {parts.value_unary, parts.value_low}, head.value_unary,
                   head.has_steps ? numbers.steps : numbers.values);
}

}  // namespace areal::delta::wire
