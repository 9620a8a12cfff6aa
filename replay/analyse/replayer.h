// Compares a run, line by line while it happens, with a recording of it.
//
// A trace sink: feed it the run that is to repeat the recording. Blocks are decoded as they are needed, so memory does
// not grow with the recording. The first line that differs is kept; nothing is compared after it. Lines are compared as
// words; only the two that differ are put into words for people. The reader is not to be used meanwhile.
#pragma once
#include <optional>
#include <string>

#include "replay/analyse/trace_lines.h"
#include "replay/record/block_words.h"

namespace areal::analyse {

struct ReplayDifference {
  std::uint64_t seq = 0;  // Of the event at which, or after which, the two part.
  std::string recorded;   // In words.
  std::string replayed;
};

class ReplayComparer final : public port::TraceSink {
 public:
  using Ahead = record::BlockWords::Ahead;

  explicit ReplayComparer(const record::RunReader& reader, Ahead ahead = Ahead::kAuto)
      : reader_(reader), blocks_(reader, ahead) {}

  void on_event(const port::TraceEvent& event) override;
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override;
  void on_stream(std::uint32_t stream, std::string_view name) override;
  void on_decision(const port::Decision& decision) override;

  // The run ended: lines of the recording that it did not repeat are a difference too.
  void finish();

  [[nodiscard]] const std::optional<ReplayDifference>& difference() const { return difference_; }
  [[nodiscard]] std::uint64_t compared() const { return compared_; }
  // Why the recording could not be read to its end; empty if it could.
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  bool is_next(std::span<const std::uint64_t> line);
  bool at_end();
  void part(const std::string& replayed);

  const record::RunReader& reader_;
  record::BlockWords blocks_;
  std::span<const std::uint64_t> words_;  // Of the present block, not yet compared.
  std::size_t blocks_given_ = 0;
  std::uint64_t compared_before_ = 0;  // Lines of the blocks before the present one.
  std::uint64_t last_seq_ = 0;
  std::uint64_t compared_ = 0;
  std::optional<ReplayDifference> difference_;
  std::string error_;
};

}  // namespace areal::analyse
