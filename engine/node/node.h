// Hosts the protocols of one process: one input in, effects out, one trace record of each.
//
// step() logs the input, steps the protocol in that slot, logs its effects in order and carries them out through the
// ports. With a fault hook, the input before it is logged and each effect before it is logged pass through the hook;
// the trace holds what really happened, and the id of the rule that changed it.
//
// A Node is a value. Not thread-safe: one loop steps it.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "engine/node/ports.h"
#include "engine/node/protocol_box.h"
#include "engine/proto/erase.h"

namespace areal::node {

// Something that happens to one protocol of a node.
struct Delivery {
  SlotId slot;
  proto::Input input;
  Origin origin;  // The effect that led to it.
};

class Node {
 public:
  // `protocols` are in their initial state; slot i is protocols[i].
  Node(NodeId id, std::string name, std::vector<ProtocolBox> protocols)
      : id_(id), name_(std::move(name)), initial_(std::move(protocols)) {}

  // The process begins: fresh protocols, a new incarnation. The host then delivers Started to every slot, before
  // anything else. REQUIRES: incarnation > the one before.
  void start(Incarnation incarnation);
  // The process is gone; nothing is delivered until start().
  void end() { alive_ = false; }

  // REQUIRES: alive(), delivery.slot < slots().size().
  void step(const Delivery& delivery, Ports& ports);
  // Delivers an input, or carries out an effect, that already passed the hook. REQUIRES: alive().
  void run_passed(const port::Passing& passing, const Origin& origin, Ports& ports);

  [[nodiscard]] NodeId id() const { return id_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool alive() const { return alive_; }
  [[nodiscard]] Incarnation incarnation() const { return incarnation_; }
  [[nodiscard]] std::span<const ProtocolBox> slots() const { return slots_; }

  void save(StateWriter& writer) const;
  bool load(StateReader& reader);

 private:
  struct Cause {
    Origin origin;
    std::uint32_t rule = 0;
  };
  // REQUIRES: `erased` is erase(input).
  void deliver(SlotId slot, const proto::Input& input, const proto::Erased& erased, const Cause& cause, Ports& ports);
  void pass_effect(SlotId slot, const proto::Effect& effect, std::uint64_t cause, Ports& ports);
  void carry_out(SlotId slot, const proto::Effect& effect, const proto::Erased& erased, std::uint64_t cause,
                 std::uint32_t rule, Ports& ports);
  std::uint64_t report(SlotId slot, port::TraceWhat what, const proto::Erased& erased, std::uint64_t cause,
                       std::uint32_t rule, Ports& ports);

  NodeId id_;
  std::string name_;
  std::vector<ProtocolBox> initial_;
  std::vector<ProtocolBox> slots_;
  Incarnation incarnation_ = 0;
  bool alive_ = false;
  std::uint64_t lamport_ = 0;
};

}  // namespace areal::node
