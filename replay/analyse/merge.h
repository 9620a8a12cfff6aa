// Merges the recordings of the processes of one run into one trace in causal order.
//
// Every part is of one incarnation of one process, with event numbers of its own; causes in other processes have names
// (engine/node/remote_cause.h). The merged trace has whole steps (merge_part.h) in order of (time of its process,
// Lamport number, node, incarnation), as far as causes allow: steps are merged through a heap, in which a step waits
// for the steps that it names as causes, and the first step of an incarnation for the end of the one before. Of steps
// that nothing links, what happened first comes first, as far as clocks agree; on one machine they do. Where members of
// a group meet, causes do not say who else had to come: meetings.h holds a step back until all have, if they can.
// Events get numbers from 1; causes become these numbers. Times stay those of each process's own clock; how far clocks
// are apart is estimated (clock_offsets.h) and told.
//
// A part that is truncated has lost its end. A cause that lay there becomes 0. The merged trace is whole only if every
// part is, or is of a process whose death another part shows; what it shows is then all that could be known. Not
// thread-safe.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/port/trace_sink.h"
#include "replay/analyse/clock_offsets.h"
#include "replay/analyse/merge_part.h"
#include "replay/record/run_reader.h"

namespace areal::analyse {

struct NamedReader {
  const record::RunReader* reader = nullptr;  // Must outlive the merge.
  std::string name;  // Of the file, for messages; "engine.0.rank.1.2.db" also says which process.
};

// What the parts say about their run alike.
struct MergeHead {
  record::RunInfo info;
  std::vector<record::NodeRow> nodes;  // Of all parts, by id.
};

// kInvalid if the parts are not of one run: other scenario, half, seed, overrides, program or kinds, or another node of
// the same id. REQUIRES: there is a part.
Result<MergeHead> read_merge_head(std::span<const NamedReader> parts);

struct MergedProcess {
  ProcessId id;
  std::string name;  // "engine.0.rank.1 #2".
  std::uint64_t events = 0;
  bool truncated = false;
  bool death_shown = false;  // By the exit that its starter saw, or by a kill.
};

struct MergeResult {
  std::uint64_t events = 0;
  std::uint64_t lost_causes = 0;         // Causes that lay in what is missing; they became 0.
  std::uint64_t open_meetings = 0;       // Ends of group operations that come before a member has come to them.
  std::vector<MergedProcess> processes;  // Ascending by id.
  std::vector<std::string> absent;       // Processes that are named as causes and have no part.
  std::vector<ClockOffset> offsets;      // Numbers are places in `processes`.

  // Nothing is missing that could have been there.
  [[nodiscard]] bool is_whole() const;
};

// Gives the merged trace to `sink`. Errors: kInvalid (two parts of one process, a part that no process can be told of),
// kCorrupt (a part is damaged, or contradicts itself or another); the sink has then heard some lines.
Result<MergeResult> merge(const MergeHead& head, std::span<const NamedReader> parts, port::TraceSink& sink);

// Some lines for people.
std::string to_text(const MergeResult& result);

}  // namespace areal::analyse
