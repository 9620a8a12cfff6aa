// What a port contract needs from an implementation of the ports: four nodes that keep what they are told, and time.
//
// The simulated room implements it in virtual time, the real room by waiting. Suites ask for nothing else, so that they
// hold for every implementation alike; where implementations may differ, HarnessFacts says how.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/dtype.h"
#include "engine/node/ports.h"
#include "engine/proto/input.h"

namespace areal::test {

// Nodes of the harness. Guard, trainer and other share a host; the engine has one of its own.
enum class Seat : std::uint8_t {
  kEngine,   // Transfer rank 0: a rollout engine of one rank.
  kTrainer,  // Transfer rank 1: the only training rank. Started by the guard.
  kOther,    // A node without a device engine.
  kGuard,    // May start and stop the trainer.
};

struct HarnessFacts {
  std::uint64_t memory = 0;      // Of one device, in bytes; nothing is loaded at first.
  Duration reset_after;          // A dead peer of a control group is known after this.
  Duration silence;              // Whoever was told nothing for so long will not be told.
  std::vector<DType> payload;    // Wire dtypes of the payload between engine and trainer, in the order of the passes.
  std::uint64_t max_tokens = 0;  // A generation asked for so many tokens lasts at least a second.
  // Whether groups asked for as NCCL hang as NCCL does; if not, all groups are Gloo's.
  bool has_nccl = false;
};

// Every node hosts two protocols that only remember their inputs, in slots 0 and 1. All processes run when the harness
// is made. Not thread-safe.
class PortHarness {
 public:
  virtual ~PortHarness() = default;
  [[nodiscard]] virtual HarnessFacts facts() const = 0;
  [[nodiscard]] virtual NodeId node(Seat seat) const = 0;
  [[nodiscard]] virtual Incarnation incarnation(Seat seat) const = 0;
  virtual node::Ports& ports(Seat seat) = 0;
  // What the present process of the node was told in this slot since the harness was made, in order.
  [[nodiscard]] virtual std::vector<proto::Input> seen(Seat seat, SlotId slot) const = 0;

  // Lets so much time pass.
  virtual void pass(Duration duration) = 0;
  // Lets time pass until nothing is under way that would end by itself.
  virtual void settle() = 0;
  // Ends the process without a word, as a crash does; it has ended when this returns. REQUIRES: trainer or engine.
  virtual void kill(Seat seat) = 0;
  // Starts it again; it runs when this returns. REQUIRES: it was killed.
  virtual void restart(Seat seat) = 0;
};

// One implementation of the ports.
struct Implementation {
  std::string name;
  std::unique_ptr<PortHarness> (*make)() = nullptr;
};

}  // namespace areal::test
