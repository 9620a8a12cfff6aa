// Splits the trace of a simulated run into what its processes would have recorded each by itself.
//
// Every part numbers its events from 1 and names causes in other processes; decisions belong to no process and are left
// out; faults go to the process that they hit, or to the first one. Parts can be cut, their clocks and Lamport numbers
// changed, as machines and deaths do.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/node/remote_cause.h"
#include "replay/analyse/merge.h"
#include "tests/replay/synthetic_trace.h"

namespace areal::testing {

// One event, or the state after a step, of one process: comparable between orders.
struct OwnLine {
  analyse::ProcessId process;
  std::uint64_t number = 0;  // Of the event in its process; 0 for a state.
  analyse::ProcessId cause_process;
  std::uint64_t cause_number = 0;  // 0: no cause.
  Instant at;
  std::uint64_t lamport = 0;
  SlotId slot;
  port::TraceWhat what = port::TraceWhat::kInput;
  std::uint32_t rule = 0;
  Record record;
  Record body;
  Digest128 state;
  bool operator==(const OwnLine&) const = default;
};

// Hears a whole trace and keeps the lines of each process by itself.
class OwnLines : public port::EventSink {
 public:
  struct Process {
    analyse::ProcessId id;
    std::uint64_t events = 0;
    std::vector<OwnLine> lines;
  };

  void on_event(const port::TraceEvent& event) override {
    Process* process = find(home_of(event));
    if (process == nullptr) return places_.push_back({});  // A fault before anything runs.
    OwnLine line;
    line.process = process->id;
    line.number = ++process->events;
    if (event.cause != 0) {
      line.cause_process = places_.at(event.cause - 1).process;
      line.cause_number = places_.at(event.cause - 1).number;
      causes_come_first = causes_come_first && event.cause < event.seq;
    }
    line.at = event.at;
    line.lamport = event.lamport;
    line.slot = event.slot;
    line.what = event.what;
    line.rule = event.rule;
    line.record = event.record;
    line.body = event.body;
    places_.push_back({process->id, line.number});
    order.push_back(places_.back());
    process->lines.push_back(line);
  }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override {
    Process& process = *find(last_of(node));
    OwnLine line;
    line.process = process.id;
    line.slot = slot;
    line.state = digest;
    process.lines.push_back(line);
  }

  struct Place {
    analyse::ProcessId process;
    std::uint64_t number = 0;
    bool operator==(const Place&) const = default;
  };
  std::vector<Process> processes;  // In the order in which they appear.
  std::vector<Place> order;        // Every event that has a process.
  bool causes_come_first = true;

 private:
  analyse::ProcessId home_of(const port::TraceEvent& event) {
    if (event.what != port::TraceWhat::kFault) {
      const analyse::ProcessId id{event.node, event.incarnation};
      if (find(id) == nullptr) processes.push_back({id, 0, {}});
      return id;
    }
    const analyse::ProcessId hit = last_of(event.node);
    return hit.incarnation != 0 || processes.empty() ? hit : processes.front().id;
  }
  [[nodiscard]] analyse::ProcessId last_of(NodeId node) const {
    analyse::ProcessId last{node, 0};
    for (const Process& process : processes) {
      if (process.id.node == node) last = std::max(last, process.id);
    }
    return last;
  }
  Process* find(const analyse::ProcessId& id) {
    const auto place = std::ranges::find(processes, id, &Process::id);
    return place != processes.end() ? &*place : nullptr;
  }

  std::vector<Place> places_;  // By event of the whole trace.
};

// How the part of one process differs from what the simulation says.
struct PartChange {
  analyse::ProcessId process;
  std::uint64_t keep = UINT64_MAX;  // Events; those after them are lost, and the part is truncated.
  Duration clock{};                 // What its clock shows more.
  bool lamport_from_0 = false;
};

// Files of parts, and their readers.
class ProcessParts {
 public:
  ProcessParts(const OwnLines& lines, const record::RunInfo& info, std::span<const record::NodeRow> nodes,
               const KindTable& kinds, const std::vector<PartChange>& changes = {}) {
    static int sets = 0;
    const std::string prefix = "parts" + std::to_string(++sets) + "_";
    for (const OwnLines::Process& process : lines.processes) {
      PartChange change{process.id};
      for (const PartChange& one : changes) change = one.process == process.id ? one : change;
      const record::NodeRow& row = *std::ranges::find(nodes, process.id.node, &record::NodeRow::id);
      files_.push_back(
          std::make_unique<ScratchFile>(prefix + row.name + "." + std::to_string(process.id.incarnation) + ".db"));
      {
        const auto recorder = record::Recorder::open(files_.back()->path(), info, {&row, 1}, kinds);
        AREAL_CHECK(recorder.has_value());
        write(process, change, **recorder);
      }
      auto reader = record::RunReader::open(files_.back()->path());
      AREAL_CHECK(reader.has_value());
      readers_.push_back(std::move(*reader));
      parts.push_back({readers_.back().get(), files_.back()->path()});
    }
  }

  std::vector<analyse::NamedReader> parts;

 private:
  static void write(const OwnLines::Process& process, const PartChange& change, record::Recorder& recorder) {
    const std::uint64_t first_lamport = change.lamport_from_0 ? process.lines.front().lamport - 1 : 0;
    for (const OwnLine& line : process.lines) {
      if (line.number > change.keep) return;
      if (line.number == 0) {
        recorder.on_state(line.process.node, line.slot, line.state);
        continue;
      }
      port::TraceEvent event{.seq = line.number,
                             .lamport = line.lamport - std::min(line.lamport, first_lamport),
                             .at = line.at + change.clock,
                             .node = line.process.node,
                             .incarnation = line.process.incarnation,
                             .slot = line.slot,
                             .what = line.what,
                             .rule = line.rule,
                             .record = line.record,
                             .body = line.body};
      if (line.what == port::TraceWhat::kFault) event.incarnation = 0;
      const bool is_local = line.cause_process == line.process || line.cause_number == 0;
      event.cause =
          is_local ? line.cause_number
                   : node::remote_cause({line.cause_process.node, line.cause_process.incarnation, line.cause_number});
      recorder.on_event(event);
    }
    if (change.keep == UINT64_MAX) AREAL_CHECK(recorder.finish({.verdict = "held", .counts = {}}).has_value());
  }

  std::vector<std::unique_ptr<ScratchFile>> files_;
  std::vector<std::unique_ptr<record::RunReader>> readers_;
};

}  // namespace areal::testing
