// Where two recordings part: the first line that differs, by field, and what led to it.
//
// The blocks' chains are bisected (equal chains mean equal lines so far), then one block a side is decoded.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "replay/record/run_reader.h"

namespace areal::analyse {

struct ValueDifference {
  std::string name;
  std::string left;  // "-" where that side has no such value.
  std::string right;
};

struct RecordingDiff {
  bool equal = true;                   // Every line is equal; the heads may still differ.
  std::vector<ValueDifference> heads;  // Scenario, half, program, seed, overrides, verdict that differ.
  // Only if not equal:
  std::uint64_t seq = 0;  // Of the first event that differs, or of the last one before another line that does.
  std::string left;       // The lines; "(end)" where a recording ends.
  std::string right;
  std::vector<ValueDifference> fields;  // Of the two lines, where they differ.
  std::string last_common;              // The last equal event; empty if there is none.
  std::string first_state;  // Node and slot whose state differs first; empty if none does in the blocks read.
  std::vector<ValueDifference>
      cursors;                         // Decision streams that have come to other ordinals at the end of these blocks.
  std::vector<std::string> ancestors;  // What led to the line, nearest first, at most kMaxAncestors.
  std::string likely;                  // What makes runs part like this.
};

inline constexpr std::size_t kMaxAncestors = 10;

Result<RecordingDiff> diff_recordings(const record::RunReader& left, const record::RunReader& right);

// Some lines for people; "equal" and the digest if they are.
std::string to_text(const RecordingDiff& diff);

}  // namespace areal::analyse
