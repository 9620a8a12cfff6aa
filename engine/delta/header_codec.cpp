// Words in and out, and one comparison of sizes.
#include "engine/delta/header_codec.h"

#include <fmt/format.h>

#include "engine/delta/remap.h"

namespace areal::delta {

std::array<std::int64_t, kHeaderWords> encode_header(const DeltaHeader& header) {
  return {kHeaderMagic, kCodecVersion, header.payload_version, header.base_version, header.sparse, header.dense};
}

Result<DeltaHeader> decode_header(std::span<const std::int64_t> words) {
  if (words.size() != kHeaderWords) {
    return Error{Errc::kCorrupt, fmt::format("delta header of {} words, should be {}", words.size(), kHeaderWords)};
  }
  if (words[0] != kHeaderMagic) {
    return Error{Errc::kCorrupt, fmt::format("delta header with magic {:#x}, should be {:#x}", words[0], kHeaderMagic)};
  }
  if (words[1] != kCodecVersion) {
    return Error{Errc::kUnsupported, fmt::format("delta codec version {}, should be {}", words[1], kCodecVersion)};
  }
  const DeltaHeader header{words[2], words[3], words[4], words[5]};
  if (header.sparse < 0 || header.dense < 0) {
    return Error{Errc::kCorrupt,
                 fmt::format("delta header with {} sparse and {} dense entries", header.sparse, header.dense)};
  }
  return header;
}

bool is_reserved_name(std::string_view name) {
  return name == kHeaderName || name.ends_with(kIndexSuffix) || name.ends_with(kValueSuffix);
}

Status check_parameter_name(std::string_view name) {
  if (!is_reserved_name(name)) return Unit{};
  return Error{Errc::kInvalid, fmt::format("'{}' is reserved for encoded deltas", name)};
}

bool is_sparse_smaller(const EncodedSize& size, double ratio) {
  const auto sparse = static_cast<double>(size.changed * (sizeof(std::int32_t) + size.element_bytes));
  return sparse <= ratio * static_cast<double>(size.elements * size.element_bytes);
}

Encoding choose_encoding(const EncodedSize& size) {
  if (size.elements == 0) return Encoding::kSkipped;
  if (size.changed == 0) return Encoding::kUnchanged;
  return size.elements < kIndexLimit && is_sparse_smaller(size) ? Encoding::kSparse : Encoding::kDense;
}

double sparsity(std::uint64_t elements, std::uint64_t changed) {
  if (elements == 0) return 1.0;
  return 1.0 - static_cast<double>(changed) / static_cast<double>(elements);
}

}  // namespace areal::delta
