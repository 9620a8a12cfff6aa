// The sender's side of encoded deltas that finds changes by comparing with a copy of what it sent last.
//
// Bits are compared: a NaN equals a NaN of the same bits, +0 and -0 differ (spec/transfer.md 1.7 step 3, 1.12). It is
// the plain reference for ways that keep no copy. A value; not thread-safe.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/result.h"
#include "engine/delta/payload_codec.h"

namespace areal::delta {

// Ascending positions at which the bits differ. REQUIRES: equally long.
std::vector<std::int64_t> changed_bits(std::span<const std::uint32_t> before, std::span<const std::uint32_t> after);

class SnapshotEncoder {
 public:
  // Receivers hold these tensors at `version` by a full transfer. Refuses reserved names and names that occur twice,
  // and then stays as it was.
  Status seed(std::span<const NamedTensor> tensors, std::int64_t version);

  // The delta from what was sent last, which these tensors then become. A tensor that was not there, or had another
  // dtype or size, is dense. Refuses an encoder that was not seeded, and what encode_delta refuses.
  Result<EncodedDelta> encode(std::span<const NamedTensor> tensors, std::int64_t version);

  [[nodiscard]] std::optional<std::int64_t> base_version() const { return base_version_; }
  // Of the copy.
  [[nodiscard]] std::uint64_t snapshot_bytes() const;

 private:
  std::optional<std::int64_t> base_version_;
  std::vector<NamedTensor> snapshot_;  // Ascending by name.
};

}  // namespace areal::delta
