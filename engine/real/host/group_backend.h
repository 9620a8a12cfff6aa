// Collective groups as the host sees them: wishes as data in, news as data out; which library moves the bytes is open.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "engine/node/tiny_payload.h"
#include "engine/port/types.h"

namespace areal::host {

struct GroupNews {
  enum class What : std::uint8_t { kJoined, kDone, kAborted };
  What what = What::kJoined;
  GroupId group{};
  BatchId batch{};
  port::Outcome outcome = port::Outcome::kOk;
  std::optional<std::uint32_t> peer_rank{};  // Who is to blame, if one is known.
  std::uint64_t value = 0;                   // Reduced words.
  std::uint64_t count = 0;
  node::BatchPayload payload{};  // Of the wish; received bytes and sums are filled if kOk.
};

// The contract is that of port::Transport's groups. Every join, batch and abort ends exactly once, as news with its
// ids. Called by the loop only; no call waits for a peer.
class GroupBackend {
 public:
  virtual ~GroupBackend() = default;
  virtual void join(GroupId group, std::uint32_t rank, std::uint32_t world) = 0;
  // `batch` names kind, tag and words; its payload belongs to the backend until the news comes.
  virtual void post(const port::PostBatch& batch, node::BatchPayload payload) = 0;
  virtual void abort(GroupId group) = 0;
  virtual void leave(GroupId group) = 0;
};

// Makes a backend that calls `deliver` on any thread, never by two at a time.
using GroupBackendMaker = std::function<std::unique_ptr<GroupBackend>(std::function<void(GroupNews)> deliver)>;

}  // namespace areal::host
