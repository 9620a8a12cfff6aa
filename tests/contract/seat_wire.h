// What a harness and its seats say to each other: packets of one size over a socket of this machine.
//
// A seat says who it is, then what its protocols are told as it happens, and when an order was carried out. The harness
// says orders. Whatever was told before an order ended comes before the word that it did.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "engine/base/time.h"
#include "engine/proto/erase.h"
#include "engine/real/host/descriptor.h"

namespace areal::test {

enum class SeatSays : std::uint8_t {
  kHere,   // Of a seat: its process runs. Node, incarnation, pid.
  kTold,   // Of a seat: `what` was told in `slot`, `at` its time.
  kOrder,  // Of the harness: carry out `what` in `slot`; kind 0: nothing.
  kDone,   // Of a seat: the order was carried out, which began `at` its time.
};

struct SeatPacket {
  SeatSays says = SeatSays::kOrder;
  NodeId node{};
  Incarnation incarnation = 0;
  pid_t pid = 0;
  SlotId slot{};
  bool within = false;  // Told within a port's call, which no port may do.
  Instant at{};
  proto::Erased what{};
};

// One end of a connection. Sending and receiving may be done by two threads.
class SeatSocket {
 public:
  SeatSocket() = default;
  explicit SeatSocket(host::Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  // Not open if nobody listens there.
  static SeatSocket connect(const std::filesystem::path& place);

  [[nodiscard]] bool is_open() const { return descriptor_.is_open(); }
  [[nodiscard]] int number() const { return descriptor_.number(); }
  void close() { descriptor_.close(); }
  // False if the other end is gone.
  [[nodiscard]] bool send(const SeatPacket& packet) const;
  // Waits for a packet; nothing if the other end is gone.
  [[nodiscard]] std::optional<SeatPacket> receive() const;

 private:
  host::Descriptor descriptor_;
};

// Where seats connect to.
class SeatListener {
 public:
  explicit SeatListener(const std::filesystem::path& place);
  [[nodiscard]] int number() const { return descriptor_.number(); }
  // REQUIRES: somebody has connected.
  [[nodiscard]] SeatSocket accept() const;

 private:
  host::Descriptor descriptor_;
};

}  // namespace areal::test
