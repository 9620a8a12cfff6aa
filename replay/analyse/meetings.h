// What causes do not name in a merge: no member of a group goes on before all have come.
//
// An operation of a group has one cause, its own member's post, but it ends for anybody only after every member has
// posted, and a group is joined only after every member has asked. The n-th batches of all members meet
// (engine/port/types.h, PostBatch). Sends and receives move pair by pair and are left out: what their ends led to is
// ordered by messages. All of this is a wish, not a duty: a member may have lost its posts with the end of its part.
// Not thread-safe.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/port/trace_sink.h"
#include "engine/port/types.h"

namespace areal::analyse {

class Meetings {
 public:
  static constexpr std::size_t kNobody = SIZE_MAX;

  // Part `part` holds this somewhere. REQUIRES: told of all parts before the first see().
  void foresee(std::size_t part, const port::TraceEvent& event);
  // This comes next in the merged trace.
  void see(const port::TraceEvent& event);
  // The part of a member that has not come yet to what `event` is the end of, and still may; else kNobody.
  // `ended`: by part, whether all of it is merged.
  [[nodiscard]] std::size_t awaited(const port::TraceEvent& event, const std::vector<bool>& ended) const;

 private:
  struct Post {
    BatchId batch{};
    std::uint64_t number = 0;
    bool meets = false;
  };
  struct Member {
    NodeId node{};
    std::size_t part = 0;  // Of the incarnation that joined last, or will.
    bool joined = false;
    std::uint64_t posted = 0;
    std::vector<Post> open{};
  };
  struct Group {
    GroupId id{};
    std::vector<Member> members{};
  };

  [[nodiscard]] const Group* find(GroupId id) const;
  Member* member(GroupId id, NodeId node);
  [[nodiscard]] static std::size_t awaited_end(const Group& group, const port::TraceEvent& event, BatchId batch,
                                               const std::vector<bool>& ended);

  std::vector<Group> groups_;  // Ascending by id.
};

}  // namespace areal::analyse
