// Bytes to fewer bytes and back, by zstd level 1; equal input gives equal output for one version of the library.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"

namespace areal::record {

// Keeps zstd's working memory from call to call. Not thread-safe.
class Compressor {
 public:
  Compressor();
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  // The results are good until the next call.
  Result<std::span<const std::uint8_t>> pack(std::span<const std::uint8_t> bytes);
  // Two frames behind each other, which unpack() reads as one: for bytes whose second part is of another nature.
  Result<std::span<const std::uint8_t>> pack(std::span<const std::uint8_t> first, std::span<const std::uint8_t> second);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Fails with kCorrupt if `packed` is not whole frames or would give other than `size` bytes. REQUIRES: size is bounded
// by the caller.
Result<std::vector<std::uint8_t>> unpack(std::span<const std::uint8_t> packed, std::size_t size);

std::string zstd_version();

}  // namespace areal::record
