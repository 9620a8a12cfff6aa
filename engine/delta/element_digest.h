// The digest of one element of one tensor, and sums of such digests: equal however a tensor is cut over ranks.
//
// An element is (tensor, index in the whole tensor, bits in the wire dtype). A set of elements is the sum of their
// digests modulo 2^128, so that senders, receivers and layouts can be compared without putting elements in order.
// Against accidents, not against attackers. Pure functions; ElementSum is a value.
#pragma once
#include <cstdint>

#include "engine/base/digest.h"
#include "engine/base/rng.h"

namespace areal::delta {

// What is the same for every value of an element; worth keeping if the element is digested often.
constexpr std::uint64_t element_key(std::uint32_t tensor, std::uint64_t global_index) {
  return mix_words(tensor, global_index);
}

// A well-mixed word from a key and any word; for one key, different words give different results. The key is mixed
// already, so half of what mix_words does is enough, in line: this is the innermost step of every digest.
constexpr std::uint64_t mix_key(std::uint64_t key, std::uint64_t word) {
  std::uint64_t mixed = key ^ (word * 0x9E3779B97F4A7C15ULL);
  mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93ULL;
  return mixed ^ (mixed >> 32);
}

constexpr Digest128 digest_of_key(std::uint64_t key, std::uint32_t bits) {
  const std::uint64_t low = mix_key(key, bits);
  const std::uint64_t folded = low * (key | 1U);
  return {.high = folded ^ (folded >> 32), .low = low};
}

constexpr Digest128 element_digest(std::uint32_t tensor, std::uint64_t global_index, std::uint32_t bits) {
  return digest_of_key(element_key(tensor, global_index), bits);
}

// A DigestSum for hot loops: adds in line, and adds the same member several times at once.
class ElementSum {
 public:
  constexpr void add(const Digest128& member) { total_ += widen(member); }
  constexpr void add(const Digest128& member, std::uint32_t times) { total_ += widen(member) * times; }
  constexpr void remove(const Digest128& member) { total_ -= widen(member); }
  [[nodiscard]] constexpr Digest128 digest() const {
    return {.high = static_cast<std::uint64_t>(total_ >> 64), .low = static_cast<std::uint64_t>(total_)};
  }

 private:
  __extension__ typedef unsigned __int128 Wide;  // NOLINT(modernize-use-using): nvcc knows this form alone
  static constexpr Wide widen(const Digest128& digest) { return (Wide{digest.high} << 64) | digest.low; }

  Wide total_ = 0;
};

}  // namespace areal::delta
