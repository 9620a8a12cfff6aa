// An encoded delta as named entries: the header first, then each changed parameter in the sender's order.
//
// A sparse parameter is NAME@delta_idx (int32 indices, as given) and NAME@delta_val (new bits), a dense one is NAME
// (all bits); unchanged ones have no entry (spec/transfer.md 1.12). Bits are one 32-bit word each, 16-bit dtypes in the
// low half. Entries come from a peer: whatever is wrong with them is refused. Pure functions; safe on any thread.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/dtype.h"
#include "engine/base/result.h"
#include "engine/delta/header_codec.h"
#include "engine/delta/sparse_payload.h"

namespace areal::delta {

struct NamedTensor {
  std::string name;
  DType dtype = DType::kBf16;
  std::vector<std::uint32_t> bits;
};

struct PayloadEntry {
  std::string name;
  DType dtype = DType::kI64;           // kI64: the header; kI32: indices; else bits.
  std::vector<std::int64_t> integers;  // Of the header and of indices.
  std::vector<std::uint32_t> bits;
};

struct EncodedParameter {
  std::string_view name;
  BitsView current;
  std::optional<ChangeSet> changes;  // Unknown ones make it dense.
};

struct EncodeStats {
  std::uint64_t elements = 0;
  std::uint64_t changed = 0;  // Elements that the payload carries.
  std::uint64_t sparse = 0;   // Parameters.
  std::uint64_t dense = 0;
  std::uint64_t unchanged = 0;
  std::uint64_t skipped = 0;
};

struct EncodedDelta {
  std::vector<PayloadEntry> entries;
  EncodeStats stats;
};

// Refuses reserved names, names that occur twice, bits that do not fit their dtype, dtypes of more than 4 bytes, and
// change sets that do not fit: another dtype than bool, int32 or int64, a mask of another length, indices outside the
// parameter or twice.
Result<EncodedDelta> encode_delta(std::int64_t payload_version, std::int64_t base_version,
                                  std::span<const EncodedParameter> parameters);

struct SparseEntry {
  std::string name;
  SparsePatch patch;
};

struct DecodedDelta {
  DeltaHeader header;
  std::vector<SparseEntry> sparse;
  std::vector<NamedTensor> dense;
};

// Entries may come in any order. Refuses a payload without header or with a bad one, indices without values and values
// without indices, pairs of unequal length, names that occur twice or are both sparse and dense, entries with both
// integers and bits, bits that do not fit their dtype, dtypes of more than 4 bytes, and other numbers of entries than
// the header says.
Result<DecodedDelta> decode_delta(std::span<const PayloadEntry> entries);

}  // namespace areal::delta
