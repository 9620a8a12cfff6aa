// Messages between the processes of a run over TCP: who is not of the run is refused, who is slow delays nobody else.
//
// Each node sends on connections that it opened and receives on those that it accepted, so a pair of nodes that talk to
// each other has two. A connection is opened when there is something to send and closed when the peer ends it; then it
// is opened again after a pause that doubles, as long as messages wait. Messages may be late or lost, never doubled;
// those that arrive on one connection arrive in order. A message is for the process that the address book named when it
// was sent, or else for the first that it names: what a process left unheard is never heard by its successor.
//
// Everything that the world can make grow is bounded: waiting messages by number, bytes and age (the oldest go first:
// a request is asked again, and the youngest answer is the one that still counts), connections that have not proved
// themselves by number and time (the oldest goes first), proved ones to one a node (the newest stays).
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/real/host/address_book.h"
#include "engine/real/host/channel.h"
#include "engine/real/host/loop.h"
#include "engine/real/host/refusal.h"
#include "engine/real/host/secret.h"

namespace areal::host {

struct LinksOptions {
  Identity self{};
  std::uint64_t run = 0;
  std::string address = "127.0.0.1";  // Of the interface to listen on; numeric.
  std::uint16_t port = 0;             // 0: any free one.
  // For one peer.
  std::size_t queue_messages = 4096;
  std::size_t queue_bytes = std::size_t{4} * 1024 * 1024;
  Duration message_age = 10_s;
  // For connections that have not proved themselves; the deadline counts from the first attempt to connect.
  std::size_t strangers = 64;
  Duration handshake_deadline = 5_s;
  std::size_t peers = 1024;        // Nodes that may prove themselves, over the whole run.
  Duration stall_deadline = 10_s;  // How long a peer may take nothing while something waits.
  Duration pause_first = 20_ms;
  Duration pause_longest = 1_s;
  // The others are counted only, so that a stranger cannot fill a recording.
  std::uint32_t reports_per_second = 100;
};

// Something that was not taken.
struct LinkReport {
  Refusal reason = Refusal::kNone;
  Refusal peer_reason = Refusal::kNone;  // With kRefusedByPeer: what the peer says.
  Identity peer{};                       // Whom we called or who proved itself; else what it claims, if anything.
  bool is_inbound = false;
  std::string remote;  // Address and port of the connection, if there is one.
};

struct LinkCounts {
  std::array<std::uint64_t, kRefusals> refused{};  // By Refusal.
  std::uint64_t sent = 0;                          // Messages handed to a connection.
  std::uint64_t received = 0;                      // Messages taken by the handler.
  std::uint64_t opened = 0;                        // Connections that both ends proved.
  [[nodiscard]] std::uint64_t of(Refusal reason) const { return refused[static_cast<std::size_t>(reason)]; }
};

struct LinkHandlers {
  // Both run on the loop. on_message may call back; on_report must not.
  // A message of a proved peer; bytes are valid during the call. False: they are none, which is counted as kBadPayload.
  std::function<bool(const Identity& from, std::span<const std::uint8_t> bytes)> on_message;
  std::function<void(const LinkReport& report)> on_report;
};

// Not thread-safe: only the loop calls it. Must not be destroyed inside one of its own handlers.
class Links {
 public:
  // Listens; connects to nobody yet. `loop` and `book` outlive it. kIo: address or port cannot be had.
  static Result<std::unique_ptr<Links>> open(Loop& loop, AddressBook& book, const Secret& secret,
                                             const LinksOptions& options, LinkHandlers handlers);
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;
  // Closes all connections; messages that wait are lost.
  ~Links();

  [[nodiscard]] std::uint16_t port() const;
  // Takes `bytes` along as soon as it goes. Too long ones are refused as kTooLong.
  void send(NodeId to, std::vector<std::uint8_t> bytes);
  // Closes what there is to and from `node` and drops what waits: its process is known to be gone.
  void forget(NodeId node);

  [[nodiscard]] const LinkCounts& counts() const;
  // Accepted connections that have not proved themselves.
  [[nodiscard]] std::size_t strangers() const;
  // Bytes of messages that wait for `node`.
  [[nodiscard]] std::size_t waiting_bytes(NodeId node) const;

 private:
  struct Impl;
  explicit Links(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace areal::host
