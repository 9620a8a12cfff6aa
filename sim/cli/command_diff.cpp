// `areal-sim diff A.db B.db`: where two recordings part.
#include <fmt/core.h>

#include "replay/analyse/recording_diff.h"
#include "sim/cli/command.h"
#include "sim/cli/open_recording.h"

namespace areal::cli {
namespace {

bool is_truncated(const record::RunReader& reader) { return reader.state() == record::RecordingState::kTruncated; }

// A difference before the end of both is one whatever is missing after it.
bool ends_first(const analyse::RecordingDiff& diff) { return diff.left == "(end)" || diff.right == "(end)"; }

// Heads that differ although every line is equal; another program is no difference of the run.
bool heads_differ(const analyse::RecordingDiff& diff) {
  for (const analyse::ValueDifference& head : diff.heads) {
    if (head.name != "program") return true;
  }
  return false;
}

}  // namespace

int command_diff(const Arguments& arguments) {
  int code = 0;
  const auto left = open_recording_file(arguments.files[0], &code);
  const auto right = open_recording_file(arguments.files[1], &code);
  if (left == nullptr || right == nullptr) return code;
  const auto diff = analyse::diff_recordings(*left, *right);
  if (!diff) {
    fmt::print(stderr, "areal-sim: {}\n", diff.error().detail);
    return kDamaged;
  }
  fmt::print("left   {}\nright  {}\n{}", arguments.files[0], arguments.files[1], analyse::to_text(*diff));
  const bool truncated = is_truncated(*left) || is_truncated(*right);
  if (is_truncated(*left)) fmt::print("{} is truncated\n", arguments.files[0]);
  if (is_truncated(*right)) fmt::print("{} is truncated\n", arguments.files[1]);
  if (diff->equal && !truncated) {
    fmt::print("digest {}\n", to_hex(left->digest()));
    return heads_differ(*diff) ? 1 : 0;
  }
  if (truncated && (diff->equal || ends_first(*diff))) return kTruncated;
  return 1;
}

}  // namespace areal::cli
