// What a dump of a row says of its versions and of the parts that it consists of.
//
// Pure functions on one row, [S]. Source: the trajectory dump of AReaL.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/algo/masked.h"

namespace areal::algo {

struct VersionRun {
  std::int64_t version = 0;
  std::size_t tokens = 0;
  bool operator==(const VersionRun&) const = default;
};

struct VersionSummary {
  std::int64_t head = -1;        // The oldest label of a trained token; -1: no token is trained.
  std::int64_t tail = -1;        // The newest.
  std::vector<VersionRun> runs;  // Labels of trained tokens, in order.
};

// REQUIRES: one length.
VersionSummary summarise_versions(std::span<const std::int64_t> versions, Mask loss_mask);

enum class RowPart : std::uint8_t { kPrompt, kGenerated, kContext };

struct RowSegment {
  RowPart part = RowPart::kPrompt;
  std::size_t tokens = 0;
  bool operator==(const RowSegment&) const = default;
};

struct RowParts {
  std::size_t prompt_end = 0;        // Where the first trained token stands; the length if there is none.
  std::vector<RowSegment> segments;  // Only where more than one run of tokens was generated.
};

RowParts split_row(Mask loss_mask);

}  // namespace areal::algo
