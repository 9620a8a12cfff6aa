// `areal-sim dump RUN.db`: the events of a recording as text.
#include <fmt/core.h>

#include <cstdio>
#include <string_view>
#include <vector>

#include "engine/base/text.h"
#include "replay/analyse/dump.h"
#include "sim/cli/command.h"
#include "sim/cli/open_recording.h"

namespace areal::cli {
namespace {

class StandardOut final : public analyse::LineOut {
 public:
  void line(std::string_view text) override {
    good_ = good_ && std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fputc('\n', stdout) != EOF;
  }
  // Whether everything could be written.
  [[nodiscard]] bool finish() { return std::fflush(stdout) == 0 && good_; }

 private:
  bool good_ = true;
};

// A pattern that fits no node of the recording is most likely misspelt; then this is wrong usage.
int explain_nothing(const record::RunReader& reader, const Arguments& arguments) {
  fmt::print(stderr, "areal-sim: no event of {} fits\n", arguments.files.front());
  if (arguments.node.empty()) return 0;
  std::vector<std::string_view> names;
  for (const record::NodeRow& node : reader.nodes()) {
    if (analyse::matches_pattern(arguments.node, node.name)) return 0;
    names.push_back(node.name);
  }
  if (arguments.node.find('/') != std::string::npos) return 0;
  fmt::print(stderr, "no node fits '{}'{}\n", arguments.node, did_you_mean(arguments.node, names));
  return kBadUsage;
}

}  // namespace

int command_dump(const Arguments& arguments) {
  int code = 0;
  const auto reader = open_recording_file(arguments.files.front(), &code);
  if (reader == nullptr) return code;
  analyse::DumpFilter filter;
  if (!arguments.node.empty()) filter.node = arguments.node;
  if (!arguments.kind.empty()) filter.kind = arguments.kind;
  filter.from = arguments.from;
  filter.to = arguments.to;
  filter.with_decisions = arguments.from_decisions;
  StandardOut out;
  const auto count = analyse::dump(*reader, filter, out);
  const bool written = out.finish();
  if (!count) {
    fmt::print(stderr, "areal-sim: {}: {}\n", arguments.files.front(), count.error().detail);
    return kDamaged;
  }
  if (!written) {
    fmt::print(stderr, "areal-sim: the standard output cannot be written\n");
    return kInternalError;
  }
  const int misspelt = *count == 0 ? explain_nothing(*reader, arguments) : 0;
  if (reader->state() != record::RecordingState::kTruncated || misspelt != 0) return misspelt;
  fmt::print(stderr, "areal-sim: {} is truncated: what came after its last commit is not there\n",
             arguments.files.front());
  return kTruncated;
}

}  // namespace areal::cli
