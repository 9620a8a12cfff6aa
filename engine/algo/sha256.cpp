#include "engine/algo/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <cstddef>

#include "engine/base/check.h"

namespace areal::algo {

Sha256 sha256(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  AREAL_CHECK(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1);
  AREAL_CHECK(size == digest.size());
  Sha256 words{};
  for (std::size_t at = 0; at < digest.size(); ++at) words[at / 4] = words[at / 4] << 8 | digest[at];
  return words;
}

std::string sha256_hex(std::string_view text) {
  std::string hex;
  for (const std::uint32_t word : sha256(text)) hex += fmt::format("{:08x}", word);
  return hex;
}

}  // namespace areal::algo
