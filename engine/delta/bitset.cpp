// Bits in, bits out.
#include "engine/delta/bitset.h"

#include <fmt/format.h>

#include "engine/delta/bf16.h"

namespace areal::delta {
namespace {

bool is_set(std::span<const std::uint8_t> bytes, std::size_t i) { return ((bytes[i / 8] >> (i % 8)) & 1) != 0; }

Status check_length(std::span<const std::uint8_t> bytes, std::int64_t elements) {
  if (elements < 0) return Error{Errc::kInvalid, fmt::format("a bitset of {} elements", elements)};
  const std::uint64_t needed = bitset_bytes(static_cast<std::uint64_t>(elements));
  if (bytes.size() >= needed) return Unit{};
  return Error{Errc::kTruncated,
               fmt::format("a bitset of {} bytes, {} elements take {}", bytes.size(), elements, needed)};
}

}  // namespace

std::vector<std::uint8_t> pack_mask(std::span<const std::uint8_t> mask) {
  std::vector<std::uint8_t> bytes(bitset_bytes(mask.size()), 0);
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0) bytes[i / 8] = static_cast<std::uint8_t>(bytes[i / 8] | (1U << (i % 8)));
  }
  return bytes;
}

Result<std::vector<std::uint8_t>> unpack_mask(std::span<const std::uint8_t> bytes, std::int64_t elements) {
  AREAL_TRY(check_length(bytes, elements));
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(elements), 0);
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = is_set(bytes, i) ? 1 : 0;
  return mask;
}

Result<std::vector<std::int64_t>> set_bits(std::span<const std::uint8_t> bytes, std::int64_t elements) {
  AREAL_TRY(check_length(bytes, elements));
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < elements; ++i) {
    if (is_set(bytes, static_cast<std::size_t>(i))) positions.push_back(i);
  }
  return positions;
}

Result<std::vector<std::uint8_t>> oracle_bitset(std::span<const float> before, std::span<const float> after,
                                                const StepOutcome& outcome) {
  if (before.size() != after.size()) {
    return Error{Errc::kInvalid, fmt::format("{} weights before, {} after", before.size(), after.size())};
  }
  std::vector<std::uint8_t> mask(after.size(), 0);
  if (!outcome.updated) return pack_mask(mask);
  if (outcome.step <= 0) return Error{Errc::kInvalid, fmt::format("step must be positive, not {}", outcome.step)};
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = to_bf16(before[i]) != to_bf16(after[i]) ? 1 : 0;
  return pack_mask(mask);
}

}  // namespace areal::delta
