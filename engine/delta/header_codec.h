// The header of an encoded delta, the names it is stored under, and how each parameter is encoded.
//
// A header is int64[6] = {0x41574558, 1, payload version, base version, sparse entries, dense entries}. A parameter is
// sparse if its indices and values take at most 0.9 of its bytes, unchanged if no element changed, else dense
// (spec/transfer.md 1.12). Payloads whose two ends negotiate nothing beforehand need it. Pure functions.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/base/result.h"

namespace areal::delta {

inline constexpr std::int64_t kHeaderMagic = 0x41574558;  // "AWEX".
inline constexpr std::int64_t kCodecVersion = 1;
inline constexpr std::size_t kHeaderWords = 6;

inline constexpr std::string_view kHeaderName = "__awex_delta_header__";
inline constexpr std::string_view kIndexSuffix = "@delta_idx";
inline constexpr std::string_view kValueSuffix = "@delta_val";

struct DeltaHeader {
  std::int64_t payload_version = 0;
  std::int64_t base_version = 0;
  std::int64_t sparse = 0;  // Parameters with indices and values.
  std::int64_t dense = 0;   // Parameters under their plain names.
  constexpr bool operator==(const DeltaHeader&) const = default;
};

std::array<std::int64_t, kHeaderWords> encode_header(const DeltaHeader& header);
// Refuses another length, magic or codec version, and negative numbers of entries.
Result<DeltaHeader> decode_header(std::span<const std::int64_t> words);

// The header's name, and every name that ends as indices or values do.
bool is_reserved_name(std::string_view name);
// Refuses a reserved name.
Status check_parameter_name(std::string_view name);

// A sparse parameter takes at most this part of its dense bytes. Source: the reference's ratio.
inline constexpr double kSparseRatio = 0.9;

struct EncodedSize {
  std::uint64_t elements = 0;
  std::uint64_t changed = 0;
  std::uint32_t element_bytes = 0;
};

// changed * (4 + element bytes) <= ratio * elements * element bytes, in float64.
bool is_sparse_smaller(const EncodedSize& size, double ratio = kSparseRatio);

enum class Encoding : std::uint8_t { kSkipped, kUnchanged, kSparse, kDense };
constexpr std::array<std::string_view, 4> enum_names(Encoding /*tag*/) {
  return {"skipped", "unchanged", "sparse", "dense"};
}

// Skipped without elements; dense if its indices would not fit int32.
Encoding choose_encoding(const EncodedSize& size);

// Part of all elements that did not change; 1 if there are none.
double sparsity(std::uint64_t elements, std::uint64_t changed);

}  // namespace areal::delta
