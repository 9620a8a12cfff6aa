// The connections of one member to all others of its group, and waits on them that always end.
//
// Gloo's own waits cannot be bounded without breaking every connection, and when a peer dies amid a message they do not
// end at all: Gloo tells only buffers whose message has not begun. So a wait here has no deadline of its own; another
// thread nudges it from time to time, and then the waiting thread itself looks whether it should go on. To see deaths,
// each connection has a receive that is never meant to end before the peer says goodbye: it fails when the connection
// does.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/port/types.h"
#include "engine/real/accel/rendezvous_store.h"

namespace gloo::transport {
class Context;
class Device;
class UnboundBuffer;
}  // namespace gloo::transport

namespace areal::accel {

using SteadyTime = std::chrono::steady_clock::time_point;

// Messages of one pair and slot arrive in order; each use has slots of its own.
constexpr std::uint64_t kGoodbyeSlot = 0;
constexpr std::uint64_t kCardSlots = 1 << 8;
constexpr std::uint64_t kPayloadSlot = 2 << 8;
constexpr std::uint64_t kSumSlots = 3 << 8;

// Why this member's part of the group is over; thrown within this folder only.
struct MeshFailure {
  port::Outcome outcome = port::Outcome::kFailed;
  std::optional<std::uint32_t> peer{};
};

// Owned and used by the group's worker; stop() and nudge() may be called by any thread.
class Mesh {
 public:
  using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

  // REQUIRES: rank < world.
  Mesh(std::uint32_t rank, std::uint32_t world);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // Connects to all others. Throws MeshFailure: kTimedOut after `deadline`, kAborted if stopped, if the store is closed
  // or if somebody who had come went away again, kRefused if the rank is taken, kMismatch if somebody names another
  // world. REQUIRES: `store` outlives the mesh.
  void connect(const std::shared_ptr<gloo::transport::Device>& device, RendezvousStore& store,
               std::optional<SteadyTime> deadline);
  // Takes this member's value out of the store. REQUIRES: all members have connected, or this one gives up.
  void leave_store();
  // Tells the others whether this member leaves or gives up (and whom it blames), then closes all connections.
  void close(bool leaves, std::optional<std::uint32_t> blamed);

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t world() const { return world_; }

  // The number of the batch that runs and when it must have ended.
  void begin(std::uint64_t batch, std::optional<SteadyTime> deadline);

  // Each buffer has at most one operation under way; it must outlive that. All throw MeshFailure.
  Buffer buffer(void* data, std::size_t bytes);
  void send(Buffer& buffer, std::uint32_t peer, std::uint64_t slot);
  void receive(Buffer& buffer, std::uint32_t peer, std::uint64_t slot);
  // For a later batch: a peer that is gone already is no failure of this one. False if it is.
  bool receive_ahead(Buffer& buffer, std::uint32_t peer, std::uint64_t slot);
  void wait_sent(Buffer& buffer, std::uint32_t peer) { wait(*buffer, peer, true); }
  void wait_received(Buffer& buffer, std::uint32_t peer) { wait(*buffer, peer, false); }

  void stop() { stopped_ = true; }
  // Makes a running wait look around.
  void nudge();

 private:
  enum class PeerState : std::uint8_t { kThere, kLeft, kAborted, kDead };
  struct Peer {
    PeerState state = PeerState::kThere;
    std::uint64_t after = 0;  // How many batches it ended before its goodbye.
    std::optional<std::uint32_t> blamed{};
    Buffer goodbye{};
  };
  using Goodbye = std::array<std::uint64_t, 3>;  // What, batches ended, blamed rank + 1.

  [[nodiscard]] std::vector<char> own_addresses() const;
  [[nodiscard]] std::vector<char> wait_for(const RendezvousStore& store, std::uint32_t peer);
  void connect_pairs(const RendezvousStore& store, const std::vector<std::vector<char>>& addresses);
  [[nodiscard]] bool must_cut();
  void wait(gloo::transport::UnboundBuffer& buffer, std::uint32_t peer, bool sends);
  bool wait_once(gloo::transport::UnboundBuffer& buffer, bool sends);
  void check();
  void look_at(std::uint32_t peer);
  [[nodiscard]] bool hears_goodbye(std::uint32_t peer);
  [[noreturn]] void fail(std::uint32_t peer);

  std::uint32_t rank_;
  std::uint32_t world_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::vector<Goodbye> goodbyes_;  // What peers wrote; stays where it is.
  std::vector<Peer> peers_;
  std::uint64_t batch_ = 0;
  std::optional<SteadyTime> deadline_;

  bool connected_ = false;
  RendezvousStore* written_ = nullptr;  // Holds this member's value.

  std::atomic<bool> stopped_{false};
  std::mutex mutex_;  // Of what follows; while connecting_ is set also of context_, which is not replaced then.
  gloo::transport::UnboundBuffer* waiting_ = nullptr;
  bool waiting_sends_ = false;
  const RendezvousStore* connecting_ = nullptr;
  std::optional<port::Outcome> cut_{};  // Why the connections were closed while they were made.
};

}  // namespace areal::accel
