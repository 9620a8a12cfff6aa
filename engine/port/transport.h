// Moves messages, and batches of group operations, between nodes; posts, never waits.
//
// Messages may be late, lost, doubled or out of order. A batch that was accepted ends exactly once, as BatchDone with
// the caller's id. Batches of one member of a group meet those of the other members in the order in which they were
// posted.
//
// A group whose member died, or whose n-th batches do not fit together: NCCL batches hang until abort(); Gloo batches
// end kPeerGone on all members once the death was noticed, kMismatch if kinds, tags or sizes differ. Nothing has a
// timeout of its own: the caller arms a timer. The only cancellation is abort(): every batch and join of that group
// that is under way, on any member, ends kAborted; then the asker gets GroupAborted, also for a group it does not know.
// Only then are its buffers its own again. A group may be left when nothing of it is under way; an aborted group is
// left already. Completions for an earlier incarnation of a node are dropped. send(), leave() have no completion.
//
// Sim: bytes move when both sides of a pair have posted and the link has carried them; a buffer freed early is caught.
// Real: completions arrive in the order of the inbox, which is recorded.
//
// Not thread-safe: only the node's loop calls it.
#pragma once
#include "engine/port/types.h"

namespace areal::port {

class Transport {
 public:
  virtual ~Transport() = default;
  virtual void send(SlotId from, const Send& effect) = 0;
  virtual void join(SlotId slot, const JoinGroup& effect) = 0;    // Ends as GroupJoined.
  virtual void post(SlotId slot, const PostBatch& effect) = 0;    // Ends as BatchDone.
  virtual void abort(SlotId slot, const AbortGroup& effect) = 0;  // Ends as GroupAborted.
  virtual void leave(SlotId slot, const LeaveGroup& effect) = 0;
};

}  // namespace areal::port
