// One recording that is merged: its lines in steps, and what its event numbers have become.
//
// A step is what its process did at one go: an input, the effects that came of it and the state after them; or one
// event by itself, where an effect was put off or a fault happened. Steps stay whole when recordings are merged. Not
// thread-safe.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "replay/analyse/trace_lines.h"

namespace areal::analyse {

// One incarnation of one process.
struct ProcessId {
  NodeId node{};
  Incarnation incarnation = 0;
  auto operator<=>(const ProcessId&) const = default;
};

class MergePart {
 public:
  // What an event of the part became.
  struct Moved {
    std::uint64_t seq = 0;  // In the merged order.
    Instant at{};           // By the process's own clock.
  };

  MergePart(const record::RunReader& reader, ProcessId process)
      : reader_(&reader), process_(process), lines_(reader, 0) {}

  // Reads the next step; at_end() if there is none. kCorrupt: the part is none of one process with numbers from 1.
  Status advance();
  [[nodiscard]] bool at_end() const { return at_end_; }
  [[nodiscard]] std::vector<TraceLine>& step() { return step_; }
  [[nodiscard]] const std::vector<TraceLine>& step() const { return step_; }
  // The process's own time at which the step began, or that of a step before it.
  [[nodiscard]] Instant at() const { return at_; }
  // The Lamport number with which the step began, or that of a step before it if that is greater: it never falls.
  [[nodiscard]] std::uint64_t lamport() const { return lamport_; }
  [[nodiscard]] bool is_first() const { return is_first_; }

  [[nodiscard]] const record::RunReader& reader() const { return *reader_; }
  [[nodiscard]] const ProcessId& process() const { return process_; }
  [[nodiscard]] bool truncated() const { return reader_->state() == record::RecordingState::kTruncated; }
  // Of all its events.
  [[nodiscard]] std::uint64_t last_seq() const {
    return reader_->blocks().empty() ? 0 : reader_->blocks().back().last_seq;
  }

  void moved(const Moved& moved) { moved_.push_back(moved); }
  // Null if the event was not merged yet.
  [[nodiscard]] const Moved* find_moved(std::uint64_t seq) const {
    return seq >= 1 && seq <= moved_.size() ? &moved_[seq - 1] : nullptr;
  }

 private:
  [[nodiscard]] Status check(const port::TraceEvent& event);
  [[nodiscard]] bool begins_step(const port::TraceEvent& event) const;

  const record::RunReader* reader_;
  ProcessId process_;
  LineStream lines_;
  std::optional<TraceLine> next_;  // The first line of the step after this.
  std::vector<TraceLine> step_;
  std::uint64_t input_seq_ = 0;  // Of the step that is being read; 0: it has ended, or has no input.
  std::uint64_t read_ = 0;       // Events so far.
  std::uint64_t lamport_ = 0;
  Instant at_;
  bool has_event_ = false;
  bool is_first_ = false;
  bool was_begun_ = false;
  bool at_end_ = false;
  std::vector<Moved> moved_;  // By event number.
};

}  // namespace areal::analyse
