// Group operations as meetings of all ranks: matching, waiting, hanging, aborting.
//
// State of one group: who joined as which rank, and the n-th batch of every member. Control (Gloo) batches meet: all
// members' n-th batches together. Payload (NCCL) batches pair: a sender's n-th batch with a receiver's n-th, pair by
// pair. Plain values; the world turns what is said here into inputs.
#pragma once
#include <optional>
#include <vector>

#include "engine/base/fields.h"
#include "engine/node/ports.h"
#include "engine/port/types.h"

namespace areal::sim {

struct GroupBatch {
  port::BatchKind kind = port::BatchKind::kBarrier;
  BatchId batch{};
  std::uint64_t tag = 0;
  port::Round round = port::Round::kDense;
  std::uint32_t part = 0;
  Version version = 0;
  BufferId buffer{};
  DType dtype = DType::kBf16;
  std::uint64_t bytes = 0;
  std::uint64_t value = 0;
  std::uint64_t count = 0;
  node::Origin origin;
  std::uint32_t pairs_left = 0;  // Payload: pairs that have not moved yet.
  bool ended = false;
  AREAL_FIELDS(kind, batch, tag, round, part, version, buffer, dtype, bytes, value, count, origin, pairs_left, ended)
};

struct GroupMember {
  NodeId node{};
  Incarnation incarnation = 0;
  SlotId slot{};
  std::uint32_t rank = 0;
  node::Origin origin;
  bool dead = false;
  bool noticed = false;  // The others know that it is dead.
  bool left = false;
  std::vector<GroupBatch> batches;
  AREAL_FIELDS(node, incarnation, slot, rank, origin, dead, noticed, left, batches)
};

struct Group {
  GroupId id{};
  port::Backend backend = port::Backend::kNccl;
  std::uint32_t world = 0;
  bool complete = false;  // Every rank joined.
  bool aborted = false;
  Instant met_at;                    // When the last member learns that it is complete.
  std::vector<GroupMember> members;  // In order of joining.
  std::vector<std::uint64_t>
      ended_tags;  // Barriers that were met: a store-backed barrier key that is used again passes.
  AREAL_FIELDS(id, backend, world, complete, aborted, met_at, members, ended_tags)

  [[nodiscard]] GroupMember* find(NodeId node);
  [[nodiscard]] GroupMember* find_rank(std::uint32_t rank);
  // Every rank of 0..world-1 is claimed once, by a living member.
  [[nodiscard]] bool is_bijection() const;
  // The dead member that the others know of, if there is one.
  [[nodiscard]] const GroupMember* known_dead() const;
};

// How the n-th meeting of a control group stands.
struct Meeting {
  bool complete = false;    // Everybody posted.
  bool fits = true;         // Kinds and tags are equal.
  std::uint64_t value = 0;  // Reduced words.
  std::uint64_t count = 0;
};
Meeting meeting_of(const Group& group, std::size_t index);

class SimGroups {
 public:
  Group& find_or_make(GroupId id, port::Backend backend, std::uint32_t world);
  [[nodiscard]] Group* find(GroupId id);
  void erase(GroupId id);
  [[nodiscard]] std::vector<Group>& all() { return groups_; }
  [[nodiscard]] const std::vector<Group>& all() const { return groups_; }

  AREAL_FIELDS(groups_)

 private:
  std::vector<Group> groups_;  // Few: those of one or two epochs.
};

}  // namespace areal::sim
