// XXH3-128 of words that come bit by bit; how they are cut into pieces makes no difference.
//
// The digest of all words so far is hash_words() of them in one piece (seed 0). A value: copies go on independently.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/digest.h"

namespace areal {

class RunningHash {
 public:
  RunningHash();
  void add(std::span<const std::uint64_t> words);
  [[nodiscard]] Digest128 digest() const;

 private:
  static constexpr std::size_t kStateBytes = 576;

  alignas(64) std::array<std::byte, kStateBytes> state_;  // XXH3_state_t; this header needs no xxhash.h.
};

}  // namespace areal
