// The groups of one epoch: joined in order, all or none, and ended only when every one of them said so.
#include "engine/proto/member_groups.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace areal::test {
namespace {

using namespace proto;  // NOLINT(google-build-using-namespace)
using Event = MemberGroups::Event;
using State = MemberGroups::State;

const InitGroups kInit{3, 2, 4, 2, 1, 4'000, false};

std::vector<SideGroup> sides() { return {{0, 0, 2}, {1, 0, 2}, {5, 1, 2}}; }

template <class E>
std::vector<E> effects(Outbox& out) {
  std::vector<E> found;
  for (const Effect& effect : out.effects()) {
    if (const E* typed = std::get_if<E>(&effect)) found.push_back(*typed);
  }
  out.clear();
  return found;
}

std::vector<GroupId> joined(Outbox& out) {
  std::vector<GroupId> ids;
  for (const port::JoinGroup& join : effects<port::JoinGroup>(out)) ids.push_back(join.group);
  return ids;
}

std::vector<GroupId> aborted(Outbox& out) {
  std::vector<GroupId> ids;
  for (const port::AbortGroup& abort : effects<port::AbortGroup>(out)) ids.push_back(abort.group);
  return ids;
}

// As far as the sides, which are being joined.
MemberGroups joining_sides(Outbox& out) {
  MemberGroups groups(sides());
  groups.join(kInit, out);
  groups.on_joined({payload_group(3), port::Outcome::kOk}, out);
  out.clear();
  groups.on_joined({control_group(3), port::Outcome::kOk}, out);
  return groups;
}

MemberGroups ready(Outbox& out) {
  MemberGroups groups = joining_sides(out);
  for (const std::uint32_t replica : {5U, 0U, 1U}) {
    groups.on_joined({replica_group(3, replica), port::Outcome::kOk}, out);
  }
  for (int i = 0; i < 2; ++i) {
    const auto posted = effects<port::PostBatch>(out);
    EXPECT_EQ(posted.size(), 1U);
    groups.on_batch({posted.at(0).group, posted.at(0).batch, port::Outcome::kOk, {}, 0, 0}, out);
  }
  EXPECT_EQ(groups.state(), State::kReady);
  out.clear();
  return groups;
}

TEST(MemberGroups, SidesAreJoinedTogetherAfterPayloadAndControl) {
  Outbox out;
  MemberGroups groups(sides());
  groups.join(kInit, out);
  EXPECT_EQ(joined(out), std::vector{payload_group(3)});
  EXPECT_EQ(groups.on_joined({control_group(3), port::Outcome::kOk}, out), Event::kNotMine);
  EXPECT_EQ(groups.on_joined({payload_group(3), port::Outcome::kOk}, out), Event::kProgress);
  EXPECT_EQ(joined(out), std::vector{control_group(3)});
  EXPECT_EQ(groups.on_joined({control_group(3), port::Outcome::kOk}, out), Event::kProgress);
  const auto asked = effects<port::JoinGroup>(out);
  ASSERT_EQ(asked.size(), 3U);
  EXPECT_EQ(asked[0].group, train_group(3));
  EXPECT_EQ(asked[0].backend, port::Backend::kGloo);
  EXPECT_EQ(asked[2].group, replica_group(3, 5));
  EXPECT_EQ(asked[2].backend, port::Backend::kNccl);
  EXPECT_EQ(asked[2].rank, 1U);
  EXPECT_EQ(asked[2].world, 2U);
}

// In whatever order they are met, the liveness exchange begins once, after the last.
TEST(MemberGroups, TheExchangeBeginsWhenTheLastSideIsMet) {
  std::vector<std::uint32_t> order{0, 1, 5};
  do {
    Outbox out;
    MemberGroups groups = joining_sides(out);
    out.clear();
    for (std::size_t i = 0; i < order.size(); ++i) {
      const port::GroupJoined met{replica_group(3, order[i]), port::Outcome::kOk};
      EXPECT_EQ(groups.on_joined(met, out), Event::kProgress);
      EXPECT_EQ(effects<port::PostBatch>(out).size(), i == 2 ? 1U : 0U);
      EXPECT_EQ(groups.on_joined(met, out), Event::kNotMine) << "it comes twice";
    }
    EXPECT_EQ(groups.state(), State::kExchanging);
  } while (std::ranges::next_permutation(order).found);
}

TEST(MemberGroups, ASideOfAnotherEpochIsNotMine) {
  Outbox out;
  MemberGroups groups = joining_sides(out);
  EXPECT_EQ(groups.on_joined({replica_group(2, 1), port::Outcome::kOk}, out), Event::kNotMine);
  EXPECT_EQ(groups.on_joined({replica_group(3, 2), port::Outcome::kOk}, out), Event::kNotMine);
}

TEST(MemberGroups, WithoutSidesTheExchangeFollowsControl) {
  Outbox out;
  MemberGroups groups;
  groups.join(kInit, out);
  groups.on_joined({payload_group(3), port::Outcome::kOk}, out);
  out.clear();
  groups.on_joined({control_group(3), port::Outcome::kOk}, out);
  EXPECT_EQ(effects<port::PostBatch>(out).size(), 1U);
  EXPECT_EQ(groups.state(), State::kExchanging);
}

// Only what was asked for is aborted; all of it, and the end waits for the last.
TEST(MemberGroups, AnAbortWhileJoiningEndsWhatWasBegun) {
  Outbox out;
  MemberGroups first(sides());
  EXPECT_FALSE(first.abort(out)) << "nothing was begun";
  first.join(kInit, out);
  out.clear();
  EXPECT_TRUE(first.abort(out));
  EXPECT_EQ(aborted(out), std::vector{payload_group(3)});
  EXPECT_EQ(first.on_aborted({payload_group(3)}), Event::kAborted);
  MemberGroups second(sides());
  second.join(kInit, out);
  second.on_joined({payload_group(3), port::Outcome::kOk}, out);
  out.clear();
  EXPECT_TRUE(second.abort(out));
  EXPECT_EQ(aborted(out), (std::vector{payload_group(3), control_group(3)}));
  for (const bool one_failed : {false, true}) {
    MemberGroups groups = joining_sides(out);
    groups.on_joined({replica_group(3, 1), port::Outcome::kOk}, out);
    if (one_failed) {
      EXPECT_EQ(groups.on_joined({replica_group(3, 5), port::Outcome::kTimedOut}, out), Event::kFailed);
    }
    out.clear();
    EXPECT_TRUE(groups.abort(out));
    const std::vector<GroupId> ended = aborted(out);
    EXPECT_EQ(ended, (std::vector{payload_group(3), control_group(3), train_group(3), replica_group(3, 1),
                                  replica_group(3, 5)}));
    EXPECT_TRUE(groups.abort(out)) << "it is on its way";
    EXPECT_TRUE(aborted(out).empty());
    EXPECT_EQ(groups.on_joined({train_group(3), port::Outcome::kAborted}, out), Event::kNotMine);
    for (std::size_t i = 0; i < ended.size(); ++i) {
      EXPECT_EQ(groups.on_aborted({ended[i]}), i + 1 == ended.size() ? Event::kAborted : Event::kProgress);
      if (i == 0) {
        EXPECT_EQ(groups.on_aborted({ended[i]}), Event::kNotMine) << "it comes twice";
      }
    }
    EXPECT_EQ(groups.state(), State::kNone);
    groups.join({4, 2, 4, 2, 1, 4'000, false}, out);
    EXPECT_EQ(joined(out), std::vector{payload_group(4)});
  }
}

TEST(MemberGroups, AReadyMemberLeavesAllItsGroups) {
  Outbox out;
  MemberGroups groups = ready(out);
  groups.leave(out);
  const auto left = effects<port::LeaveGroup>(out);
  ASSERT_EQ(left.size(), 5U);
  EXPECT_EQ(left[2].group, train_group(3));
  EXPECT_EQ(left[4].group, replica_group(3, 5));
  EXPECT_EQ(groups.state(), State::kNone);
  EXPECT_FALSE(groups.abort(out));
}

TEST(MemberGroups, NoTwoGroupsOfAnyEpochsShareAnId) {
  std::vector<GroupId> ids;
  for (Epoch epoch = 1; epoch < 200; ++epoch) {
    ids.push_back(payload_group(epoch));
    ids.push_back(control_group(epoch));
    for (std::uint32_t replica = 0; replica < 20; ++replica) ids.push_back(replica_group(epoch, replica));
  }
  std::ranges::stable_sort(ids);
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
}

}  // namespace
}  // namespace areal::test
