// The block's format by whole words: the same bits as reference_block.cpp, read and written 64 at a time.
#include <algorithm>

#include "engine/delta/wire/block.h"

namespace areal::delta::wire {
namespace {

constexpr std::uint64_t kNarrowTotal = 1U << 30;

// floor(log2(v)), as the exponent of a float, which compilers turn into vectors. The second highest bit is taken out so
// that nothing rounds up. REQUIRES: 0 < v < 2^31.
std::uint32_t exponent_of(std::uint32_t v) {
  return (float_bits(static_cast<float>(static_cast<std::int32_t>(v & ~(v >> 1)))) >> 23) - 127;
}

// What zeros_of() gives for all numbers together, below 2^32 for narrow ones.
std::uint64_t zeros_in(std::span<const std::uint32_t> numbers, StreamCode code) {
  std::uint32_t zeros = 0;
  if (code.rule == Rule::kRice) {
    for (const std::uint32_t number : numbers) zeros += number >> code.k;
  } else {
    for (const std::uint32_t number : numbers) zeros += exponent_of((number >> code.k) + 1);
  }
  return zeros;
}

std::uint64_t zeros_in(std::span<const std::uint64_t> numbers, StreamCode code) {
  std::uint64_t zeros = 0;
  for (const std::uint64_t number : numbers) zeros += zeros_of(code, number);
  return zeros;
}

// Narrow numbers are below 2^30 together: sums of them and of their lengths fit 32 bits.
StreamSums sums_of(std::span<const std::uint32_t> numbers) {
  std::uint32_t total = 0;
  std::uint32_t lengths = 0;
  std::uint32_t either = 0;  // As long as the longest.
  for (const std::uint32_t number : numbers) {
    total += number;
    lengths += exponent_of(2 * number + 1);
    either |= number;
  }
  return {numbers.size(), total, lengths, either};
}

StreamSums sums_of(std::span<const std::uint64_t> numbers) {
  StreamSums sums{.count = numbers.size()};
  for (const std::uint64_t number : numbers) {
    sums.total += number;
    sums.lengths += bit_length(number);
    sums.most |= number;
  }
  return sums;
}

template <class Number>
ChosenCode choose(std::span<const Number> numbers) {
  const StreamSums sums = sums_of(numbers);
  const StreamCode packed = candidate_code(sums, 0);
  ChosenCode best{packed, 0, low_bits(packed, sums.count, 0)};
  for (std::uint32_t candidate = 1; candidate < kCandidates; ++candidate) {
    const StreamCode code = candidate_code(sums, candidate);
    // Of these k each number's length is more than the best's, whatever the zeros are.
    if (code.rule == Rule::kPacked || sums.count * (code.k + 1) >= best.unary + best.low) continue;
    const std::uint64_t zeros = zeros_in(numbers, code);
    const ChosenCode now{code, unary_bits(code, sums.count, zeros), low_bits(code, sums.count, zeros)};
    if (now.unary + now.low < best.unary + best.low) best = now;
  }
  return best;
}

// Adds numbers from the lowest bit; no branch depends on their widths.
class BitWriter {
 public:
  explicit BitWriter(std::uint32_t* words) : words_(words) {}
  // REQUIRES: width <= 32, and bits has no more.
  void put(std::uint64_t bits, std::uint32_t width) {
    kept_ |= bits << filled_;
    filled_ += width;
    *words_ = static_cast<std::uint32_t>(kept_);
    words_ += filled_ / 32;
    kept_ >>= filled_ & 32U;
    filled_ &= 31U;
  }
  void put_wide(std::uint64_t bits, std::uint32_t width) {
    if (width > 32) {
      put(bits & 0xFFFFFFFFU, 32);
      bits >>= 32;
      width -= 32;
    }
    put(bits, width);
  }
  void put_unary(std::uint64_t zeros) {
    for (; zeros > 31; zeros -= 32) put(0, 32);
    put(std::uint64_t{1} << zeros, static_cast<std::uint32_t>(zeros) + 1);
  }
  void finish() {
    if (filled_ > 0) *words_ = static_cast<std::uint32_t>(kept_);
  }

 private:
  std::uint32_t* words_;
  std::uint64_t kept_ = 0;
  std::uint32_t filled_ = 0;
};

// A writer may leave rubbish in the word behind its last, so parts are written in their order.
using Words = std::array<std::uint32_t, 2 * kMostBlockUnits + 4>;

void put_low(BitWriter& writer, std::uint32_t bits, std::uint32_t width) { writer.put(bits, width); }
void put_low(BitWriter& writer, std::uint64_t bits, std::uint32_t width) { writer.put_wide(bits, width); }

template <class Number>
void write_list(std::span<const Number> numbers, StreamCode code, std::uint32_t* unary, std::uint32_t* low) {
  if (code.rule != Rule::kPacked) {
    BitWriter writer(unary);
    for (const Number number : numbers) writer.put_unary(zeros_of(code, number));
    writer.finish();
  }
  BitWriter writer(low);
  if (code.rule == Rule::kExpGolomb) {
    for (const Number number : numbers) {
      const SplitNumber split = split_number(code, number);
      put_low(writer, static_cast<Number>(split.low), split.width);
    }
  } else {
    const auto mask = static_cast<Number>(code.rule == Rule::kRice ? low_mask(code.k) : ~std::uint64_t{0});
    for (const Number number : numbers) put_low(writer, number & mask, code.k);
  }
  writer.finish();
}

// REQUIRES: width < 64, and two words behind the last bit may be read.
std::uint64_t bits_at(const std::uint32_t* words, std::uint64_t place, std::uint32_t width) {
  const std::uint32_t* from = words + place / 32;
  const auto shift = static_cast<std::uint32_t>(place % 32);
  std::uint64_t bits = (from[0] | (std::uint64_t{from[1]} << 32)) >> shift;
  if (shift + width > 64) bits |= std::uint64_t{from[2]} << (64 - shift);
  return bits & low_mask(width);
}

// Word number `word` of a unary part, without what stands behind the part.
std::uint32_t unary_word(const std::uint32_t* words, std::uint32_t bits, std::uint32_t word) {
  const std::uint32_t rest = bits - word * 32;
  return words[word] & (rest < 32 ? static_cast<std::uint32_t>(low_mask(rest)) : 0xFFFFFFFFU);
}

// Calls act(number, zeros) for each 1 bit until it says no. Only a part with `count` of them, the last one at its end,
// is read at all: otherwise zeros would ask for more low bits than there are.
template <class Act>
const char* read_unary(const std::uint32_t* words, std::uint32_t bits, std::uint32_t count, const Act& act) {
  const std::uint32_t end = words_of(bits);
  std::uint32_t ones = 0;
  for (std::uint32_t word = 0; word < end; ++word) {
    ones += static_cast<std::uint32_t>(__builtin_popcount(unary_word(words, bits, word)));
  }
  if (ones < count) return kTooFew;
  if (ones > count || (bits > 0 && ((words[end - 1] >> ((bits - 1) % 32)) & 1U) == 0)) return kTooMany;
  std::uint32_t found = 0;
  std::uint32_t next = 0;  // Behind the last 1.
  for (std::uint32_t word = 0; word < end; ++word) {
    for (std::uint32_t left = unary_word(words, bits, word); left != 0; left &= left - 1) {
      const std::uint32_t place = word * 32 + static_cast<std::uint32_t>(__builtin_ctz(left));
      if (!act(found, place - next)) return kTooLarge;
      next = place + 1;
      ++found;
    }
  }
  return nullptr;
}

// REQUIRES: parts_of() was compared with what there is, so that low parts are as long as all unary bits ask for.
template <class Number>
const char* read_list(const std::uint32_t* unary, const std::uint32_t* low, StreamCode code, std::uint32_t unary_bits,
                      std::span<Number> numbers) {
  std::uint64_t place = 0;
  const auto count = static_cast<std::uint32_t>(numbers.size());
  if (code.rule == Rule::kPacked) {
    for (Number& number : numbers) {
      number = static_cast<Number>(bits_at(low, place, code.k));
      place += code.k;
    }
    return nullptr;
  }
  if (code.rule == Rule::kRice) {
    return read_unary(unary, unary_bits, count, [&](std::uint32_t i, std::uint32_t zeros) {
      const std::uint64_t number = (std::uint64_t{zeros} << code.k) | bits_at(low, place, code.k);
      place += code.k;
      numbers[i] = static_cast<Number>(number);
      return is_joinable(code, zeros) && numbers[i] == number;
    });
  }
  return read_unary(unary, unary_bits, count, [&](std::uint32_t i, std::uint32_t zeros) {
    if (!is_joinable(code, zeros)) return false;
    const std::uint32_t width = code.k + zeros;
    const std::uint64_t number = join_number(code, zeros, bits_at(low, place, width));
    place += width;
    numbers[i] = static_cast<Number>(number);
    return numbers[i] == number;
  });
}

}  // namespace

void write_block_fast(const BlockNumbers& numbers, ValueKind kind, std::vector<std::uint64_t>& units) {
  const std::uint32_t changes = numbers.changes;
  const std::span<const std::uint64_t> gaps = std::span(numbers.gaps).first(changes - 1);
  const std::span<const std::uint32_t> steps = std::span(numbers.steps).first(changes);
  std::array<std::uint32_t, kBlockChanges> narrow_gaps;
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i + 1 < changes; ++i) {
    total += gaps[i];
    narrow_gaps[i] = static_cast<std::uint32_t>(gaps[i]);
  }
  const bool is_narrow = total < kNarrowTotal;
  const auto narrow = std::span<const std::uint32_t>(narrow_gaps).first(changes - 1);
  const BlockHead head =
      head_of(is_narrow ? choose(narrow) : choose(gaps), kind.form == Form::kSteps ? choose(steps) : ChosenCode{},
              kind.form, kind.value_bytes, changes);
  const BlockParts parts = parts_of(head, changes);
  Words words;
  is_narrow ? write_list(narrow, head.gaps, words.data() + parts.gap_unary, words.data() + parts.gap_low)
            : write_list(gaps, head.gaps, words.data() + parts.gap_unary, words.data() + parts.gap_low);
  write_list(head.has_steps ? steps : std::span(numbers.values).first(changes), head.values,
             words.data() + parts.value_unary, words.data() + parts.value_low);
  if (parts.end % 2 != 0) words[parts.end] = 0;
  const std::size_t begin = units.size();
  units.resize(begin + parts.units());
  units[begin] = pack_head(head);
  for (std::uint32_t i = 1; i < parts.units(); ++i) {
    units[begin + i] = words[2 * i] | (std::uint64_t{words[2 * i + 1]} << 32);
  }
}

const char* read_lists_fast(std::span<const std::uint64_t> units, const BlockHead& head, BlockNumbers& numbers) {
  const BlockParts parts = parts_of(head, numbers.changes);
  Words words;
  for (std::size_t i = 0; i < units.size(); ++i) {
    words[2 * i] = static_cast<std::uint32_t>(units[i]);
    words[2 * i + 1] = static_cast<std::uint32_t>(units[i] >> 32);
  }
  std::fill_n(words.begin() + static_cast<std::ptrdiff_t>(2 * units.size()), 4, 0U);
  const char* wrong = read_list(words.data() + parts.gap_unary, words.data() + parts.gap_low, head.gaps, head.gap_unary,
                                std::span(numbers.gaps).first(numbers.changes - 1));
  if (wrong != nullptr) return wrong;
  return read_list(words.data() + parts.value_unary, words.data() + parts.value_low, head.values, head.value_unary,
                   std::span(head.has_steps ? numbers.steps : numbers.values).first(numbers.changes));
}

}  // namespace areal::delta::wire
