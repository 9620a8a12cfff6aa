#include "engine/algo/version_runs.h"

#include <algorithm>

#include "engine/base/check.h"

namespace areal::algo {

VersionSummary summarise_versions(std::span<const std::int64_t> versions, Mask loss_mask) {
  AREAL_CHECK(versions.size() == loss_mask.size());
  VersionSummary summary;
  for (std::size_t at = 0; at < versions.size(); ++at) {
    if (loss_mask[at] == 0) continue;
    const std::int64_t version = versions[at];
    if (summary.runs.empty()) {
      summary.head = summary.tail = version;
    }
    summary.head = std::min(summary.head, version);
    summary.tail = std::max(summary.tail, version);
    if (summary.runs.empty() || summary.runs.back().version != version) summary.runs.push_back({version, 0});
    ++summary.runs.back().tokens;
  }
  return summary;
}

RowParts split_row(Mask loss_mask) {
  RowParts parts{.prompt_end = loss_mask.size(), .segments = {}};
  std::size_t generated_runs = 0;
  for (std::size_t at = 0; at < loss_mask.size(); ++at) {
    const bool generated = loss_mask[at] != 0;
    if (generated && generated_runs == 0) parts.prompt_end = std::min(parts.prompt_end, at);
    const RowPart part = generated ? RowPart::kGenerated : generated_runs == 0 ? RowPart::kPrompt : RowPart::kContext;
    if (parts.segments.empty() || parts.segments.back().part != part) {
      parts.segments.push_back({part, 0});
      generated_runs += generated ? 1 : 0;
    }
    ++parts.segments.back().tokens;
  }
  if (generated_runs < 2) parts.segments.clear();
  return parts;
}

}  // namespace areal::algo
