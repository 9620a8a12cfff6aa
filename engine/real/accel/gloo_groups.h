// Groups of real processes over Gloo: pure data in, events out, one worker thread a group that may block.
//
// The Gloo half of the contract in engine/port/transport.h. The host fills buffers on its loop and takes them back with
// the event; in between they belong to the worker. The n-th batch of every member of a group meets: first all members
// exchange a card of fixed size with kind, tag, words and sizes, so that whatever does not fit ends kMismatch on all of
// them (and the group goes on); then bytes move, of all pairs at once.
//
// A member that died is noticed by the reset of its connections: what is under way ends kPeerGone with its rank, and so
// does every later batch of that group until it is aborted. A member that aborts tells the others, whose batches end
// kAborted, or kPeerGone with the rank that it blames. Whoever leaves does so after a batch that all members ended, a
// barrier: sent bytes may else be lost with its connections.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/time.h"
#include "engine/port/types.h"

namespace areal::accel {

struct PeerBytes {
  std::uint32_t rank = 0;
  std::vector<std::byte> bytes;
};

struct JoinWish {
  GroupId group{};
  std::uint32_t rank = 0;
  std::uint32_t world = 0;
};

// One batch of this member. kSend and kReceive are one kind of meeting: in it a member may do both, or neither.
// REQUIRES: at most one entry a peer in `sends` and in `receives`, and none for the member itself; else kMismatch.
struct BatchWish {
  GroupId group{};
  BatchId batch{};
  port::BatchKind kind = port::BatchKind::kBarrier;
  std::uint64_t tag = 0;
  std::uint64_t value = 0;
  std::uint64_t count = 0;
  std::vector<PeerBytes> sends;        // kSend, kReceive: in the order in which they are started.
  std::vector<PeerBytes> receives;     // kSend, kReceive: each of the size that its peer sends.
  std::vector<float> sums;             // kReduce: added over the group in the order of ranks.
  std::vector<std::int64_t> statuses;  // kReduce: likewise, modulo 2^64.
};

struct GroupEvent {
  enum class What : std::uint8_t { kJoined, kDone, kAborted };
  What what = What::kJoined;
  GroupId group{};
  BatchId batch{};                             // kDone.
  port::Outcome outcome = port::Outcome::kOk;  // kJoined, kDone.
  std::optional<std::uint32_t> peer_rank{};    // Who is to blame, if one is known.
  std::uint64_t value = 0;                     // Reduced by kSum, kMin, kMax, kReduce; else as posted.
  std::uint64_t count = 0;
  std::vector<PeerBytes> received{};     // `receives` of the wish, filled if kOk.
  std::vector<PeerBytes> sent{};         // `sends` of the wish: its memory may be used again.
  std::vector<float> sums{};             // Of the wish, added up if kOk.
  std::vector<std::int64_t> statuses{};  // Likewise.
};

struct GlooOptions {
  std::string folder;                  // Where members of one machine meet; made if absent, empty when all have met.
  std::string run;                     // Part of the name of every group; REQUIRES: a file name.
  std::string hostname = "127.0.0.1";  // Of the address that the others connect to.
  std::string interface;               // If not empty, its address instead.
  Duration slice = 20_ms;              // How long a wait goes on before it looks for deaths and aborts.
  // A join or batch that runs longer ends kTimedOut; 0: never, the caller arms a timer.
  Duration join_timeout{};
  Duration operation_timeout{};
  Duration end_bound = 5_s;  // The destructor takes no longer.
};

// Every join, batch and abort ends exactly once, as an event with its ids. `deliver` is called on threads of this
// object, never by two at a time; it must not block for long.
//
// All functions may be called by one thread only, the host's loop; none of them waits for a peer.
class GlooGroups {
 public:
  GlooGroups(GlooOptions options, std::function<void(GroupEvent)> deliver);
  // Ends everything under way as kAborted.
  ~GlooGroups();
  GlooGroups(const GlooGroups&) = delete;
  GlooGroups& operator=(const GlooGroups&) = delete;

  // Ends as kJoined once all members have met; kRefused for a group or a rank that is in use, kMismatch if
  // another member is seen to name another world.
  void join(JoinWish wish);
  // Ends as kDone; kAborted if the group is not known (any more).
  void post(BatchWish wish);
  // Ends what is under way as kAborted, then as kAborted itself, also for a group that is not known.
  void abort(GroupId group);
  // Leaves once all posted batches have ended. No event.
  void leave(GroupId group);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace areal::accel
