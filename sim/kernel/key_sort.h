// Sorts a few keys without a jump whose direction must be guessed: a usual sort guesses wrongly once for each key.
//
// Each key becomes 32 bits, its time in 26 of them and its place; its rank is the count of smaller ones, which is
// computed for four keys at a time. Times that differ less than the 26 bits can say are put right afterwards.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "sim/kernel/queue_key.h"

namespace areal::sim {

using FourWords [[gnu::vector_size(16)]] = std::int32_t;

// The most keys of sort_few().
inline constexpr std::size_t kFewKeys = 32;

// For each word, how many are smaller. All loops are written out, so that nothing is left to guess.
template <std::size_t... Quarter, std::size_t... Word>
inline void rank_words(const std::int32_t* words, std::int32_t* ranks, std::index_sequence<Quarter...> /*quarters*/,
                       std::index_sequence<Word...> /*all*/) {
  const std::array<FourWords, sizeof...(Quarter)> all{
      FourWords{words[Quarter * 4], words[Quarter * 4 + 1], words[Quarter * 4 + 2], words[Quarter * 4 + 3]}...};
  std::array<FourWords, sizeof...(Quarter)> smaller{};
  const auto count = [&](std::int32_t word) {
    const FourWords same{word, word, word, word};
    ((smaller[Quarter] -= same < all[Quarter]), ...);  // A comparison that holds is -1.
  };
  (count(words[Word]), ...);
  (((ranks[Quarter * 4] = smaller[Quarter][0]), (ranks[Quarter * 4 + 1] = smaller[Quarter][1]),
    (ranks[Quarter * 4 + 2] = smaller[Quarter][2]), (ranks[Quarter * 4 + 3] = smaller[Quarter][3])),
   ...);
}

// REQUIRES: `keys` and `sorted` have room for Size items, of which the first `count` are keys; none of them is before
// `start`, or further behind it than `extent`; equal times are in the order of their numbers.
template <std::size_t Size>
inline void sort_sized(const QueueKey* keys, std::size_t count, QueueKey* sorted, std::int64_t start,
                       std::uint64_t extent) {
  constexpr int kPlaceBits = 5;
  constexpr int kTimeBits = 31 - kPlaceBits;
  static_assert(Size <= std::size_t{1} << kPlaceBits);
  const int width = static_cast<int>(std::bit_width(extent));
  const auto shift = static_cast<unsigned>(width > kTimeBits ? width - kTimeBits : 0);
  // All of both is set below.
  std::array<std::int32_t, Size> words;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::array<std::int32_t, Size> ranks;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (std::size_t i = 0; i < Size; ++i) {
    const auto time = static_cast<std::uint32_t>(offset_from(start, keys[i].at.ns) >> shift) << kPlaceBits;
    words[i] = i < count ? static_cast<std::int32_t>(time | i) : INT32_MAX;
  }
  rank_words(words.data(), ranks.data(), std::make_index_sequence<Size / 4>{}, std::make_index_sequence<Size>{});
  for (std::size_t i = 0; i < count; ++i) sorted[ranks[i]] = keys[i];
  if (shift == 0) return;
  for (std::size_t i = 1; i < count; ++i) {
    for (std::size_t j = i; j > 0 && sorted[j] < sorted[j - 1]; --j) std::swap(sorted[j], sorted[j - 1]);
  }
}

// REQUIRES: count <= kFewKeys, and what sort_sized() asks for, with room for kFewKeys items.
inline void sort_few(const QueueKey* keys, std::size_t count, QueueKey* sorted, std::int64_t start,
                     std::uint64_t extent) {
  if (count <= 8) {
    sort_sized<8>(keys, count, sorted, start, extent);
  } else if (count <= 16) {
    sort_sized<16>(keys, count, sorted, start, extent);
  } else {
    sort_sized<kFewKeys>(keys, count, sorted, start, extent);
  }
}

}  // namespace areal::sim
