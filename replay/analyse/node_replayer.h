// Steps the protocols of single nodes again with the inputs of a recording, and compares what comes out.
//
// Nothing else of a world is needed: a node's inputs are all that its protocols see. Each recorded input goes to the
// protocol in its slot; the effects that come out are compared with the recorded ones in order and word by word, then
// the state with the recorded digest. Times, event numbers and causes are the host's and are not compared. A Started
// input of a new incarnation resets all slots. Recordings of simulations, of one process and merged ones are alike.
//
// Rules: an input is taken as it is recorded. A recorded effect with a rule was changed, put off, repeated or made
// after the protocol, so it is counted and not compared; an effect that comes out and is not recorded unchanged is
// counted as unseen if a rule matches its kind, and is a difference otherwise.
//
// A process that was killed may have lost the end of its last step: a step that has no state, and after which its
// process does nothing more, is compared as far as it goes. Not thread-safe.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/node/protocol_box.h"
#include "engine/proto/erase.h"
#include "replay/analyse/recording_diff.h"
#include "replay/analyse/trace_lines.h"

namespace areal::analyse {

struct NodeToReplay {
  NodeId id{};
  std::vector<node::ProtocolBox> protocols;  // In their initial state, by slot.
  std::vector<KindId> ruled_kinds;           // Of effects and of their bodies that some rule of the run matches.
};

// The first difference of a node.
struct NodeDifference {
  std::uint64_t seq = 0;  // Of the recorded event, or of the last one before what is missing or what state differs.
  SlotId slot{};
  std::string recorded;  // In words; "(nothing)" where one side has nothing.
  std::string replayed;
  std::vector<ValueDifference> fields;  // left: recorded, right: replayed.
};

struct NodeReplay {
  NodeId id{};
  std::uint64_t incarnations = 0;
  std::uint64_t inputs = 0;   // Given to protocols.
  std::uint64_t effects = 0;  // Compared.
  std::uint64_t states = 0;   // Compared.
  std::uint64_t ruled = 0;    // Recorded effects and drops with a rule: not compared.
  std::uint64_t unseen = 0;   // Effects that came out and that a rule changed, put off or took away.
  std::uint64_t cut = 0;      // Last steps of a process that are not recorded to their end.
  std::optional<NodeDifference> difference;
};

// Nothing is replayed or counted after the first difference.
class NodeReplayer {
 public:
  NodeReplayer(const record::RunReader& reader, NodeToReplay node);

  // REQUIRES: the event is of this node, and they come in order.
  void on_event(const port::TraceEvent& event);
  void on_state(SlotId slot, const Digest128& digest);
  // The recording ended.
  void finish();

  [[nodiscard]] const NodeReplay& result() const { return result_; }

 private:
  void begin_step(const port::TraceEvent& event);
  void compare_effect(const port::TraceEvent& event);
  // The step is over: what came out and is not recorded is missing, except where the process was cut off.
  void end_step(bool is_cut);
  [[nodiscard]] bool may_be_unseen(const proto::Erased& effect) const;
  void differ(const port::TraceEvent& at, const TraceLine* recorded, const TraceLine* replayed);
  void differ(const port::TraceEvent& at, std::string recorded, std::string replayed);

  const record::RunReader& reader_;
  NodeToReplay node_;
  std::vector<node::ProtocolBox> slots_;
  Incarnation incarnation_ = 0;
  NodeReplay result_;
  port::TraceEvent last_;  // Of this node.

  // The step at work.
  bool is_open_ = false;
  port::TraceEvent input_;
  std::vector<proto::Erased> made_;  // What came out.
  std::size_t next_ = 0;             // Into made_: all before were found.
};

// Replays several nodes in one pass; results in the order of `nodes`. Errors as RunReader::read_all().
Result<std::vector<NodeReplay>> replay_nodes(const record::RunReader& reader, std::vector<NodeToReplay> nodes);

}  // namespace areal::analyse
