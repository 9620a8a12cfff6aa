// `areal-sim diff A.db B.db`: where two recordings part, or whether their histories are equal up to time.
#include <fmt/core.h>

#include "replay/analyse/history.h"
#include "replay/analyse/history_diff.h"
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

int fail_damaged(const Error& error) {
  fmt::print(stderr, "areal-sim: {}\n", error.detail);
  return kDamaged;
}

// Prints which of them are; true if any is.
bool report_truncated(const Arguments& arguments, const record::RunReader& left, const record::RunReader& right) {
  if (is_truncated(left)) fmt::print("{} is truncated\n", arguments.files[0]);
  if (is_truncated(right)) fmt::print("{} is truncated\n", arguments.files[1]);
  return is_truncated(left) || is_truncated(right);
}

int print_lines_diff(const Arguments& arguments, const record::RunReader& left, const record::RunReader& right) {
  const auto diff = analyse::diff_recordings(left, right);
  if (!diff) return fail_damaged(diff.error());
  fmt::print("{}", analyse::to_text(*diff));
  const bool truncated = report_truncated(arguments, left, right);
  if (diff->equal && !truncated) {
    fmt::print("digest {}\n", to_hex(left.digest()));
    return heads_differ(*diff) ? 1 : 0;
  }
  if (truncated && (diff->equal || ends_first(*diff))) return kTruncated;
  return 1;
}

int print_history_diff(const Arguments& arguments, const record::RunReader& left, const record::RunReader& right) {
  const auto left_history = analyse::read_history(left);
  if (!left_history) return fail_damaged(left_history.error());
  const auto right_history = analyse::read_history(right);
  if (!right_history) return fail_damaged(right_history.error());
  const analyse::HistoryDiff diff = analyse::diff_histories(*left_history, *right_history);
  fmt::print("{}", analyse::to_text(diff));
  const bool truncated = report_truncated(arguments, left, right);
  if (truncated && analyse::may_be_truncation(diff, is_truncated(left), is_truncated(right))) {
    if (!diff.is_equal()) fmt::print("what differs may be no more than what is missing\n");
    return kTruncated;
  }
  return diff.is_equal() ? 0 : 1;
}

}  // namespace

int command_diff(const Arguments& arguments) {
  int code = 0;
  const auto left = open_recording_file(arguments.files[0], &code);
  const auto right = open_recording_file(arguments.files[1], &code);
  if (left == nullptr || right == nullptr) return code;
  fmt::print("left   {}\nright  {}\n", arguments.files[0], arguments.files[1]);
  return arguments.history ? print_history_diff(arguments, *left, *right) : print_lines_diff(arguments, *left, *right);
}

}  // namespace areal::cli
