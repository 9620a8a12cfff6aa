// What the members of a group do together: INV-6, INV-19, INV-GLOO-ORDER, INV-GLOO-CTRL and INV-XFER-DTYPE.
//
// The n-th batch of every member meets. Members must post the same operation (a send meets receives), with equal tag,
// version and size; what all send together is what all receive together; nobody is done before all have posted. The
// member that differs from most others is to blame; in a tie, the one that came later. A group ends with the first
// abort, failed batch or restarted member: nothing after that is compared.
#pragma once
#include "sim/check/flat.h"
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class GroupJudge final : public JudgeOf<GroupJudge> {
 public:
  explicit GroupJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "group"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;

 private:
  struct Posted {
    std::uint64_t seq = 0;  // 0: not posted.
    port::PostBatch batch;
    bool done = false;
  };
  struct Meeting {
    std::vector<Posted> posts;  // By member.
    std::size_t posted = 0;
    std::size_t done = 0;
    bool judged = false;
  };
  struct Member {
    NodeId node;
    std::uint32_t rank = 0;
    std::uint64_t posted = 0;  // Batches so far.
  };
  struct Group {
    port::Backend backend = port::Backend::kNccl;
    std::uint32_t world = 0;
    bool ended = false;
    std::vector<Member> members;  // In the order of joining.
    std::uint64_t first = 0;      // Number of meetings[0].
    std::vector<Meeting> meetings;
  };

  void on_join(const port::TraceEvent& event, const port::JoinGroup& join, Violations& out);
  void on_post(const port::TraceEvent& event, const port::PostBatch& batch, Violations& out);
  void on_done(const port::TraceEvent& event, const port::BatchDone& done, Violations& out);
  void on_leave(const port::TraceEvent& event, GroupId id, Violations& out);
  void end_group(const port::TraceEvent& event, Group& group, Violations& out);
  void judge_meeting(const port::TraceEvent& event, const Group& group, Meeting& meeting, Violations& out) const;
  void judge_sizes(const port::TraceEvent& event, const Group& group, const Meeting& meeting, Violations& out) const;
  void report(const port::TraceEvent& event, InvariantId invariant, const Member& member, const Posted& post,
              const std::string& why, Violations& out) const;
  static Member* member_of(Group& group, NodeId node);
  [[nodiscard]] bool claims_wrongly(NodeId node, const port::JoinGroup& join) const;

  SetupPtr setup_;
  Incarnations incarnations_;
  Flat<GroupId, Group> groups_;
};

}  // namespace areal::sim
