#include "replay/record/compress.h"

#include <zstd.h>

namespace areal::record {

struct Compressor::Impl {
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context{ZSTD_createCCtx(), &ZSTD_freeCCtx};
  std::vector<std::uint8_t> packed;
};

Compressor::Compressor() : impl_(std::make_unique<Impl>()) {}
Compressor::~Compressor() = default;

Result<std::span<const std::uint8_t>> Compressor::pack(std::span<const std::uint8_t> bytes) { return pack(bytes, {}); }

Result<std::span<const std::uint8_t>> Compressor::pack(std::span<const std::uint8_t> first,
                                                       std::span<const std::uint8_t> second) {
  std::vector<std::uint8_t>& packed = impl_->packed;
  const std::size_t room = ZSTD_compressBound(first.size()) + ZSTD_compressBound(second.size());
  if (packed.size() < room) packed.resize(room);
  std::size_t size = 0;
  for (const std::span<const std::uint8_t> part : {first, second}) {
    if (part.empty() && size > 0) continue;
    const std::size_t more = ZSTD_compressCCtx(impl_->context.get(), packed.data() + size, packed.size() - size,
                                               part.data(), part.size(), 1);
    if (ZSTD_isError(more) != 0) return Error{Errc::kNoMemory, std::string("zstd: ") + ZSTD_getErrorName(more)};
    size += more;
  }
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
