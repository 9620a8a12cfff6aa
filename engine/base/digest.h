// A 128-bit running hash of canonical words; two runs are equal if their digests are.
//
// XXH3-128 (libxxhash). Words are hashed in little-endian order, so digests are equal on every machine we build for.
#pragma once
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace areal {

struct Digest128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  constexpr auto operator<=>(const Digest128&) const = default;
};

// 32 lower-case hex digits.
std::string to_hex(const Digest128& digest);

Digest128 hash_words(std::span<const std::uint64_t> words, std::uint64_t seed = 0);
Digest128 hash_bytes(std::span<const std::uint8_t> bytes, std::uint64_t seed = 0);
Digest128 hash_text(std::string_view text, std::uint64_t seed = 0);

// The digest of a set: order does not matter, and a member is taken out as it was put in (sum modulo 2^128).
struct DigestSum {
  Digest128 total;
  void add(const Digest128& member);
  void remove(const Digest128& member);
};

// `chain` moved on by one link.
Digest128 chain_digest(const Digest128& chain, const Digest128& link);

}  // namespace areal
