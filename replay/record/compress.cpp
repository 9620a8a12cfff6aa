#include "replay/record/compress.h"

#include <zstd.h>

namespace areal::record {

struct Compressor::Impl {
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context{ZSTD_createCCtx(), &ZSTD_freeCCtx};
  std::vector<std::uint8_t> packed;
};

Compressor::Compressor() : impl_(std::make_unique<Impl>()) {}
Compressor::~Compressor() = default;

Result<std::span<const std::uint8_t>> Compressor::pack(std::span<const std::uint8_t> bytes) {
  std::vector<std::uint8_t>& packed = impl_->packed;
  packed.resize(ZSTD_compressBound(bytes.size()));
  const std::size_t size =
      ZSTD_compressCCtx(impl_->context.get(), packed.data(), packed.size(), bytes.data(), bytes.size(), 1);
  if (ZSTD_isError(size) != 0) return Error{Errc::kNoMemory, std::string("zstd: ") + ZSTD_getErrorName(size)};
  return std::span<const std::uint8_t>(packed.data(), size);
}

Result<std::vector<std::uint8_t>> unpack(std::span<const std::uint8_t> packed, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  const std::size_t got = ZSTD_decompress(bytes.data(), bytes.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) != 0) return Error{Errc::kCorrupt, std::string("zstd: ") + ZSTD_getErrorName(got)};
  if (got != size) return Error{Errc::kCorrupt, "packed bytes are not as long as stated"};
  return bytes;
}

std::string zstd_version() { return ZSTD_versionString(); }

}  // namespace areal::record
