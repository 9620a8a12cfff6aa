// Two 32-bit words in one 64-bit word: how the tiny engine's weights are saved.
#pragma once
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace areal::node {

// The word of an element that holds nothing when the count is odd is 0.
template <class Word>
void append_words(std::vector<std::uint64_t>& out, const std::vector<Word>& values) {
  static_assert(sizeof(Word) == sizeof(std::uint32_t));
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const std::uint64_t low = std::bit_cast<std::uint32_t>(values[i]);
    const std::uint64_t high = i + 1 < values.size() ? std::bit_cast<std::uint32_t>(values[i + 1]) : 0;
    out.push_back(low | (high << 32));
  }
}

// Words that `count` values take.
constexpr std::size_t words_for(std::size_t count) { return (count + 1) / 2; }

// Fills `values` from the front of `words` and moves `words` on. REQUIRES: words.size() >= words_for(values.size()).
template <class Word>
void take_words(std::span<const std::uint64_t>& words, std::vector<Word>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t word = words[i / 2];
    values[i] = std::bit_cast<Word>(static_cast<std::uint32_t>(i % 2 == 0 ? word : word >> 32));
  }
  words = words.subspan(words_for(values.size()));
}

}  // namespace areal::node
