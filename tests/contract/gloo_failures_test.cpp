// Groups over Gloo that come to a bad end: aborts, deaths, members that never come, objects that end.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <thread>

#include "tests/contract/gloo_member.h"

namespace areal::test {
namespace {

using accel::BatchWish;
using accel::GroupEvent;
using port::BatchKind;
using port::Outcome;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr GroupId kGroup{9};
constexpr std::uint32_t kWorld = 3;
constexpr auto kQuickly = std::chrono::seconds(10);  // Far more than it takes, for a machine that is busy.

// A process that is one member; what it does ends with it. Made before this process has threads.
class Child {
 public:
  template <class Do>
  explicit Child(Do&& what) : process_(fork()) {
    if (process_ != 0) return;
    what();
    _exit(0);
  }
  ~Child() { kill_and_wait(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void kill_and_wait() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_;
};

BatchWish payload(std::uint32_t from, std::uint32_t to, std::uint32_t rank, std::size_t bytes) {
  BatchWish wish = control(kGroup, 1, rank == from ? BatchKind::kSend : BatchKind::kReceive);
  if (rank == from) wish.sends.push_back(filled(to, bytes, 1));
  if (rank == to) wish.receives.push_back({from, std::vector<std::byte>(bytes)});
  return wish;
}

// Joins as the last rank, posts what it is given and then does nothing until it is killed.
template <class Make>
auto last_member(const MeetingPlace& place, Make&& make) {
  return [&place, make] {
    GlooMember member(place.options());
    member.groups().join({kGroup, kWorld - 1, kWorld});
    member.take();
    for (BatchWish& wish : make()) member.groups().post(std::move(wish));
    for (;;) pause();
  };
}

void expect_gone_for_good(GlooTeam& team, std::uint32_t dead) {
  for (const GroupEvent& event : team.take_all()) {
    EXPECT_EQ(event.what, What::kDone);
    EXPECT_EQ(event.outcome, Outcome::kPeerGone);
    EXPECT_EQ(event.peer_rank, dead);
  }
  team.post_all([](std::uint32_t) { return control(kGroup, 2, BatchKind::kBarrier); });
  for (const GroupEvent& event : team.take_all()) {
    EXPECT_EQ(event.batch.value, 2U);
    EXPECT_EQ(event.outcome, Outcome::kPeerGone);
    EXPECT_EQ(event.peer_rank, dead);
  }
  for (std::uint32_t rank = 0; rank < team.world(); ++rank) team.at(rank).groups().abort(kGroup);
  for (const GroupEvent& event : team.take_all()) EXPECT_EQ(event.what, What::kAborted);
}

// The survivors are threads of this process, ranks 0 and 1.
void join_survivors(GlooTeam& team) {
  for (std::uint32_t rank = 0; rank < team.world(); ++rank) team.at(rank).groups().join({kGroup, rank, kWorld});
  for (const GroupEvent& event : team.take_all()) ASSERT_EQ(event.outcome, Outcome::kOk);
}

}  // namespace

TEST(GlooFailures, AbortEndsEverythingUnderWayAndThenSaysSo) {
  const MeetingPlace place;
  GlooTeam team(place, kWorld);
  team.meet(kGroup);
  for (const std::uint64_t batch : {1U, 2U}) team.at(0).groups().post(control(kGroup, batch, BatchKind::kBarrier));
  team.at(1).groups().post(control(kGroup, 1, BatchKind::kBarrier));
  std::this_thread::sleep_for(milliseconds(50));
  const auto begin = Clock::now();
  team.at(0).groups().abort(kGroup);
  for (const std::uint64_t batch : {1U, 2U}) {
    const GroupEvent event = team.at(0).take();
    EXPECT_EQ(event.what, What::kDone);
    EXPECT_EQ(event.batch.value, batch);
    EXPECT_EQ(event.outcome, Outcome::kAborted);
  }
  EXPECT_EQ(team.at(0).take().what, What::kAborted);
  const GroupEvent other = team.at(1).take();
  EXPECT_EQ(other.outcome, Outcome::kAborted);
  EXPECT_EQ(other.peer_rank, 0U);
  EXPECT_LT(Clock::now() - begin, kQuickly);
  // Who had posted nothing learns of it with its next batch.
  team.at(2).groups().post(control(kGroup, 1, BatchKind::kBarrier));
  EXPECT_EQ(team.at(2).take().outcome, Outcome::kAborted);
  // Nothing comes after an abort, but what is posted to the group still ends.
  team.at(0).groups().post(control(kGroup, 3, BatchKind::kBarrier));
  EXPECT_EQ(team.at(0).take().outcome, Outcome::kAborted);
  EXPECT_EQ(team.at(0).untaken(), 0U);
}

TEST(GlooFailures, AbortEndsAPayloadUnderWay) {
  const MeetingPlace place;
  GlooTeam team(place, 2);
  team.meet(kGroup);
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  for (std::uint32_t rank = 0; rank < 2; ++rank) team.at(rank).groups().post(payload(0, 1, rank, kBytes));
  std::this_thread::sleep_for(milliseconds(3));
  team.at(1).groups().abort(kGroup);
  const GroupEvent receiver = team.at(1).take();
  const GroupEvent sender = team.at(0).take();
  EXPECT_TRUE(receiver.outcome == Outcome::kAborted || receiver.outcome == Outcome::kOk);
  EXPECT_TRUE(sender.outcome == Outcome::kAborted || sender.outcome == Outcome::kPeerGone ||
              sender.outcome == Outcome::kOk);
  EXPECT_EQ(receiver.received[0].bytes.size(), kBytes);  // The memory comes back.
  EXPECT_EQ(sender.sent[0].bytes.size(), kBytes);
  EXPECT_EQ(team.at(1).take().what, What::kAborted);
}

TEST(GlooFailures, AbortEndsJoinsOnAllMembers) {
  const MeetingPlace place;
  GlooTeam team(place, 3);
  for (std::uint32_t rank = 0; rank < 2; ++rank) team.at(rank).groups().join({kGroup, rank, kWorld});
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(team.at(0).untaken() + team.at(1).untaken(), 0U);
  team.at(0).groups().abort(kGroup);
  const GroupEvent joined = team.at(0).take();
  EXPECT_EQ(joined.what, What::kJoined);
  EXPECT_EQ(joined.outcome, Outcome::kAborted);
  EXPECT_EQ(team.at(0).take().what, What::kAborted);
  const GroupEvent other = team.at(1).take();
  EXPECT_EQ(other.what, What::kJoined);
  EXPECT_EQ(other.outcome, Outcome::kAborted);
  team.at(2).groups().join({kGroup, 2, kWorld});  // Also of who comes later.
  EXPECT_EQ(team.at(2).take().outcome, Outcome::kAborted);
}

// The one that waits for rank 1 cannot see from the others that rank 2 went away.
TEST(GlooFailures, AbortOfALaterRankEndsTheJoinsOfEarlierOnes) {
  const MeetingPlace place;
  GlooTeam team(place, 3);
  for (const std::uint32_t rank : {0U, 2U}) team.at(rank).groups().join({kGroup, rank, kWorld});
  std::this_thread::sleep_for(milliseconds(100));
  team.at(2).groups().abort(kGroup);
  EXPECT_EQ(team.at(0).take().outcome, Outcome::kAborted);
}

TEST(GlooFailures, AbortByWhoHasNotJoinedEndsTheJoinsOfOthers) {
  const MeetingPlace place;
  GlooTeam team(place, 2);
  team.at(0).groups().join({kGroup, 0, kWorld});
  std::this_thread::sleep_for(milliseconds(100));
  team.at(1).groups().abort(kGroup);
  EXPECT_EQ(team.at(1).take().what, What::kAborted);
  const GroupEvent joined = team.at(0).take();
  EXPECT_EQ(joined.what, What::kJoined);
  EXPECT_EQ(joined.outcome, Outcome::kAborted);
}

TEST(GlooFailures, EveryoneWhoAbortsIsToldAlsoOfAnUnknownGroup) {
  const MeetingPlace place;
  GlooTeam team(place, 2);
  team.meet(kGroup);
  for (std::uint32_t rank = 0; rank < 2; ++rank) team.at(rank).groups().abort(kGroup);
  for (std::uint32_t rank = 0; rank < 2; ++rank) team.at(rank).groups().abort(GroupId{4'000});
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    std::uint64_t groups = 0;
    for (int i = 0; i < 2; ++i) {
      const GroupEvent event = team.at(rank).take();
      EXPECT_EQ(event.what, What::kAborted);
      groups += event.group.value;
    }
    EXPECT_EQ(groups, kGroup.value + 4'000);
    EXPECT_EQ(team.at(rank).untaken(), 0U);
  }
}

TEST(GlooFailures, ARankThatNeverComesEndsTheJoinAsTimedOut) {
  const MeetingPlace place;
  accel::GlooOptions options = place.options();
  options.join_timeout = 300_ms;
  GlooTeam team(options, 2);
  const auto begin = Clock::now();
  for (std::uint32_t rank = 0; rank < 2; ++rank) team.at(rank).groups().join({kGroup, rank, kWorld});
  std::size_t timed_out = 0;
  for (const GroupEvent& event : team.take_all()) {
    EXPECT_EQ(event.what, What::kJoined);
    EXPECT_TRUE(event.outcome == Outcome::kTimedOut || event.outcome == Outcome::kAborted);
    timed_out += event.outcome == Outcome::kTimedOut ? 1 : 0;
  }
  EXPECT_GE(timed_out, 1U);
  EXPECT_GE(Clock::now() - begin, milliseconds(300));
  EXPECT_LT(Clock::now() - begin, kQuickly);
  EXPECT_TRUE(place.empty());
  team.post_all([](std::uint32_t) { return control(kGroup, 1, BatchKind::kBarrier); });
  for (const GroupEvent& event : team.take_all()) EXPECT_NE(event.outcome, Outcome::kOk);
}

TEST(GlooFailures, JoinsThatCannotMeetAreRefused) {
  const MeetingPlace place;
  accel::GlooOptions options = place.options();
  options.join_timeout = 1_s;
  GlooTeam team(options, 2);
  team.at(0).groups().join({kGroup, 0, 3});
  std::this_thread::sleep_for(milliseconds(100));
  team.at(1).groups().join({kGroup, 0, 3});  // A rank twice.
  EXPECT_EQ(team.at(1).take().outcome, Outcome::kRefused);
  team.at(1).groups().join({GroupId{10}, 3, 3});  // No such rank.
  EXPECT_EQ(team.at(1).take().outcome, Outcome::kRefused);
  EXPECT_EQ(team.at(0).take().outcome, Outcome::kTimedOut);
  team.at(0).groups().join({GroupId{11}, 0, 3});
  team.at(1).groups().join({GroupId{11}, 1, 2});  // Another world.
  // Whoever sees it first gives up, which the other may see first.
  const std::vector<GroupEvent> events = team.take_all();
  EXPECT_TRUE(events[0].outcome == Outcome::kMismatch || events[1].outcome == Outcome::kMismatch);
  for (const GroupEvent& event : events) EXPECT_NE(event.outcome, Outcome::kOk);
}

TEST(GlooFailures, AnAddressThatIsNotOursFailsTheJoin) {
  const MeetingPlace place;
  accel::GlooOptions options = place.options();
  for (const char* hostname : {"192.0.2.1", "no.such.name.invalid"}) {
    options.hostname = hostname;
    GlooMember member(options);
    member.groups().join({kGroup, 0, 2});
    EXPECT_EQ(member.take().outcome, Outcome::kFailed) << hostname;
  }
  options.interface = "no-such-device";
  GlooMember member(options);
  member.groups().join({kGroup, 0, 2});
  EXPECT_EQ(member.take().outcome, Outcome::kFailed);
}

TEST(GlooFailures, ADeathDuringABarrierIsNoticedByAll) {
  const MeetingPlace place;
  Child child(last_member(place, [] { return std::vector<BatchWish>{}; }));
  GlooTeam team(place, 2);
  join_survivors(team);
  team.post_all([](std::uint32_t) { return control(kGroup, 1, BatchKind::kBarrier); });
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(team.at(0).untaken() + team.at(1).untaken(), 0U);
  const auto begin = Clock::now();
  child.kill_and_wait();
  expect_gone_for_good(team, kWorld - 1);
  EXPECT_LT(Clock::now() - begin, kQuickly);
}

// Far more bytes than move before the death: it comes amid a message, and Gloo itself would not tell whoever waits for
// the rest of that.
void die_amid_a_payload(std::uint32_t from, std::uint32_t to) {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  const MeetingPlace place;
  int begun[2];
  ASSERT_EQ(pipe2(begun, O_CLOEXEC), 0);
  Child child([&] {
    GlooMember member(place.options());
    member.groups().join({kGroup, kWorld - 1, kWorld});
    member.take();
    member.groups().post(payload(from, to, kWorld - 1, kBytes));
    while (write(begun[1], "x", 1) != 1) continue;
    for (;;) pause();
  });
  {
    GlooTeam team(place, 2);
    join_survivors(team);
    char byte = 0;
    ASSERT_EQ(read(begun[0], &byte, 1), 1);
    team.post_all([&](std::uint32_t rank) { return payload(from, to, rank, kBytes); });
    std::this_thread::sleep_for(milliseconds(10));
    child.kill_and_wait();
    // The third member has no part in the payload: its batch may have ended well.
    const std::uint32_t partner = from == kWorld - 1 ? to : from;
    const GroupEvent event = team.at(partner).take();
    EXPECT_EQ(event.outcome, Outcome::kPeerGone);
    EXPECT_EQ(event.peer_rank, kWorld - 1);
    team.at(1 - partner).take();
    team.post_all([](std::uint32_t) { return control(kGroup, 2, BatchKind::kBarrier); });
    expect_gone_for_good(team, kWorld - 1);
  }
  close(begun[0]);
  close(begun[1]);
}

TEST(GlooFailures, ADeathOfTheSenderAmidAPayloadIsNoticed) { die_amid_a_payload(kWorld - 1, 0); }
TEST(GlooFailures, ADeathOfTheReceiverAmidAPayloadIsNoticed) { die_amid_a_payload(0, kWorld - 1); }

TEST(GlooFailures, ABatchThatRunsTooLongEndsAsTimedOutIfAskedFor) {
  const MeetingPlace place;
  accel::GlooOptions options = place.options();
  options.operation_timeout = 200_ms;
  GlooTeam team(options, 2);
  team.meet(kGroup);
  team.at(0).groups().post(control(kGroup, 1, BatchKind::kBarrier));
  EXPECT_EQ(team.at(0).take().outcome, Outcome::kTimedOut);
}

TEST(GlooFailures, TheEndOfAnObjectEndsAllItsBatches) {
  const MeetingPlace place;
  GlooTeam team(place, 3);
  team.meet(kGroup);
  team.at(0).groups().post(control(kGroup, 1, BatchKind::kBarrier));
  team.at(0).groups().post(control(kGroup, 2, BatchKind::kBarrier));
  team.at(1).groups().post(control(kGroup, 1, BatchKind::kBarrier));
  team.at(2).groups().join({GroupId{10}, 0, 2});
  const auto begin = Clock::now();
  for (const std::uint32_t rank : {2U, 0U, 1U}) team.at(rank).end();
  EXPECT_LT(Clock::now() - begin, kQuickly);
  EXPECT_EQ(team.at(2).take().outcome, Outcome::kAborted);
  for (const std::uint64_t batch : {1U, 2U}) {
    const GroupEvent event = team.at(0).take();
    EXPECT_EQ(event.batch.value, batch);
    EXPECT_EQ(event.outcome, Outcome::kAborted);
  }
  EXPECT_EQ(team.at(1).take().outcome, Outcome::kAborted);
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(team.at(rank).untaken(), 0U);
  EXPECT_TRUE(place.empty());
}

}  // namespace areal::test
