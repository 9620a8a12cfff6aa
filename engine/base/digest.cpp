#include "engine/base/digest.h"

#include <array>
#include <bit>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace areal {

static_assert(std::endian::native == std::endian::little, "words are hashed as they lie in memory");

namespace {

Digest128 from_xxh(XXH128_hash_t hash) { return {.high = hash.high64, .low = hash.low64}; }

}  // namespace

std::string to_hex(const Digest128& digest) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(32, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    text[i] = kDigits[(digest.high >> (60 - 4 * i)) & 15];
    text[16 + i] = kDigits[(digest.low >> (60 - 4 * i)) & 15];
  }
  return text;
}

Digest128 hash_words(std::span<const std::uint64_t> words, std::uint64_t seed) {
  return from_xxh(XXH3_128bits_withSeed(words.data(), words.size_bytes(), seed));
}

Digest128 hash_bytes(std::span<const std::uint8_t> bytes, std::uint64_t seed) {
  return from_xxh(XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed));
}

Digest128 hash_text(std::string_view text, std::uint64_t seed) {
  return from_xxh(XXH3_128bits_withSeed(text.data(), text.size(), seed));
}

void DigestSum::add(const Digest128& member) {
  const std::uint64_t low = total.low + member.low;
  total.high += member.high + (low < total.low ? 1 : 0);
  total.low = low;
}

void DigestSum::remove(const Digest128& member) {
  const std::uint64_t borrow = total.low < member.low ? 1 : 0;
  total.low -= member.low;
  total.high -= member.high + borrow;
}

Digest128 chain_digest(const Digest128& chain, const Digest128& link) {
  const std::array<std::uint64_t, 4> words{chain.high, chain.low, link.high, link.low};
  return hash_words(words);
}

}  // namespace areal
