// SHA-256 (FIPS 180-4) of a text: seeds and fingerprints are defined by it.
//
// Not for secrets: those are the host layer's, by a library that opens its configuration and holds locks. This one is a
// pure function.
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
