// What is said when a run did not hold: the violation in words, its causes, and a command that was run and reproduced
// it.
#pragma once
#include <string>
#include <vector>

#include "sim/cli/loaded.h"

namespace areal::cli {

// The command that runs this again: program, scenario, seed and everything else that matters.
std::string reproduce_command(const Arguments& arguments, const std::string& scenario, std::uint64_t seed,
                              const std::string& half);

// Keeps the lines of a run that a cause chain needs; bounded.
class CauseLog final : public port::TraceSink {
 public:
  void on_event(const port::TraceEvent& event) override;
  void on_state(NodeId /*node*/, SlotId /*slot*/, const Digest128& /*digest*/) override {}
  void on_stream(std::uint32_t /*stream*/, std::string_view /*name*/) override {}
  void on_decision(const port::Decision& /*decision*/) override {}

  // From `seq` back to where it began, at most `most` lines.
  [[nodiscard]] std::vector<port::TraceEvent> chain(std::uint64_t seq, std::size_t most) const;

 private:
  std::vector<port::TraceEvent> events_;  // events_[i].seq == i + 1.
};

// Prints the failure of `result`.
void print_failure(const Loaded& loaded, const sim::RunResult& result, const CauseLog& log, std::uint64_t seed);

}  // namespace areal::cli
