// Fills the tables that people query from the kinds of trace events.
//
// A row of something that lasts (a transfer, a lease, a join, a collective) is written when it has ended, with the seq
// of its first event as key; what has not ended when the run does is written by finish() with NULL for what is missing.
// So no row is ever changed. Not thread-safe.
#pragma once
#include <map>
#include <optional>
#include <tuple>

#include "engine/port/notes.h"
#include "engine/port/trace_sink.h"
#include "replay/record/node_names.h"
#include "replay/record/stored_kinds.h"
#include "replay/record/table_writer.h"

namespace areal::record {

class TypedRows {
 public:
  TypedRows(NodeNames names, StoredKinds kinds) : names_(std::move(names)), kinds_(std::move(kinds)) {}

  void on_event(const port::TraceEvent& event, TableWriter& tables);
  // Writes what is still under way.
  void finish(TableWriter& tables);

 private:
  struct Begin {
    std::uint64_t seq = 0;
    std::string node;
    Instant at;
  };
  struct Transfer {
    Begin start;
    port::UpdateStarted what;
  };
  struct Lease {
    std::uint64_t seq = 0;
    port::LeaseChanged what;
    std::optional<Instant> leased, bound;
  };
  struct Join {
    Begin start;
    port::JoinGroup what;
  };
  struct Collective {
    Begin start;
    port::PostBatch what;
  };
  // Ids are chosen by the protocol that uses them, anew in every incarnation.
  using Owner = std::tuple<NodeId, Incarnation, SlotId>;

  void on_input(const port::TraceEvent& event, TableWriter& tables);
  void on_effect(const port::TraceEvent& event, TableWriter& tables);
  void on_fault(const port::TraceEvent& event, const std::string& kind, const std::string& text, TableWriter& tables);
  void on_note(const port::TraceEvent& event, TableWriter& tables);
  void on_lease(const port::TraceEvent& event, const port::LeaseChanged& change, TableWriter& tables);
  void on_update_ended(const port::TraceEvent& event, const port::UpdateEnded& end, TableWriter& tables);

  void write(const Transfer& transfer, const port::UpdateEnded* end, const Begin& at, TableWriter& tables) const;
  void write(const Lease& lease, std::optional<Instant> released, TableWriter& tables) const;
  void write(const Join& join, const port::GroupJoined* end, Instant at, TableWriter& tables) const;
  void write(const Collective& collective, const port::BatchDone* end, Instant at, TableWriter& tables) const;

  NodeNames names_;
  StoredKinds kinds_;
  std::map<std::tuple<NodeId, Epoch, Version, Attempt>, Transfer> transfers_;
  std::map<std::pair<HostId, std::uint16_t>, Lease> leases_;
  std::map<std::pair<Owner, GroupId>, Join> joins_;
  std::map<std::tuple<Owner, GroupId, BatchId>, Collective> collectives_;
};

}  // namespace areal::record
