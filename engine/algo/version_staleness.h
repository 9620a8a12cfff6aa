// How old the tokens of an update are, in versions, and the three numbers that statistics report of a list.
//
// Over tokens that the mask keeps and that have a version (>= 0): c - v against the weights under training, version c,
// and c - 1 - v against the proximal ones. The limit on staleness bounds how far ahead tasks are started, not the age
// of what is consumed: slow tasks and batches with fewer accepted tasks than they admit exceed it, so it is measured
// here. Pure. Source: the staleness statistics of AReaL's PPO actor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/algo/masked.h"
#include "engine/base/result.h"

namespace areal::algo {

struct Summary {
  double average = 0;
  double most = 0;
  double least = 0;
};

// A NaN makes all three one. kInvalid: nothing to summarise.
Result<Summary> summary_of(std::span<const double> values);

struct VersionStaleness {
  Summary theta;
  Summary proximal;
  std::size_t tokens = 0;
  std::size_t too_old = 0;    // Above max_staleness against the weights under training; 0 without a limit.
  std::size_t too_young = 0;  // Of a version that the trainer does not have yet.
};

// None where no kept token has a version. REQUIRES: spans of one length; versions aligned as the mask is.
std::optional<VersionStaleness> version_staleness(std::span<const std::int64_t> versions, Mask mask,
                                                  std::int64_t current_version,
                                                  std::optional<std::int64_t> max_staleness = std::nullopt);

}  // namespace areal::algo
