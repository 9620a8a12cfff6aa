// SHA-256 (FIPS 180-4) of a text: seeds and fingerprints are defined by it.
//
// By libcrypto; here are only the words in which the formulas of seeds are written. The value depends on the text
// alone; safe from any thread. Aborts if libcrypto cannot hash.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace areal::algo {

// Eight words, the first the most significant: bytes 0..3 of the digest, big-endian, are word 0.
using Sha256 = std::array<std::uint32_t, 8>;

Sha256 sha256(std::string_view text);

// 64 lower-case hex digits.
std::string sha256_hex(std::string_view text);

}  // namespace areal::algo
