// Groups over Gloo: joins, meetings of words, payload and sums.
#include <atomic>
#include <thread>

#include "tests/contract/gloo_member.h"

namespace areal::test {
namespace {

using accel::BatchWish;
using accel::GroupEvent;
using accel::PeerBytes;
using port::BatchKind;
using port::Outcome;

constexpr GroupId kGroup{7};

std::size_t entries_of(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

unsigned seed_of(std::uint32_t from, std::uint32_t to) { return from * 16 + to; }

}  // namespace

TEST(GlooGroups, JoinsOfAnySizeMeetAndLeaveNoFile) {
  for (const std::uint32_t world : {1U, 2U, 3U, 4U, 7U}) {
    const MeetingPlace place;
    GlooTeam team(place, world);
    team.meet(kGroup);
    EXPECT_TRUE(place.empty()) << world;
    team.post_all([](std::uint32_t) { return control(kGroup, 1, BatchKind::kBarrier); });
    for (const GroupEvent& event : team.take_all()) EXPECT_EQ(event.outcome, Outcome::kOk);
    for (std::uint32_t rank = 0; rank < world; ++rank) team.at(rank).groups().leave(kGroup);
  }
}

TEST(GlooGroups, SumLeastAndMostAreOfBothWords) {
  for (const std::uint32_t world : {2U, 3U, 4U}) {
    const MeetingPlace place;
    GlooTeam team(place, world);
    team.meet(kGroup);
    const auto value = [&](std::uint32_t rank) { return rank == 1 ? UINT64_MAX : rank + 5U; };
    std::uint64_t sum = 0;
    std::uint64_t count = 0;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      sum += value(rank);
      count += rank * 10;
    }
    team.post_all([&](std::uint32_t rank) { return control(kGroup, 1, BatchKind::kSum, value(rank), rank * 10); });
    team.post_all([&](std::uint32_t rank) { return control(kGroup, 2, BatchKind::kMin, value(rank), 50 - rank); });
    team.post_all([&](std::uint32_t rank) { return control(kGroup, 3, BatchKind::kMax, value(rank), 50 - rank); });
    for (std::uint64_t batch = 1; batch <= 3; ++batch) {
      for (const GroupEvent& event : team.take_all()) {
        EXPECT_EQ(event.what, What::kDone);
        EXPECT_EQ(event.outcome, Outcome::kOk);
        EXPECT_EQ(event.batch.value, batch);
        if (batch == 1) {
          EXPECT_EQ(event.value, sum);
          EXPECT_EQ(event.count, count);
        }
        if (batch == 2) {
          EXPECT_EQ(event.value, 5U);
          EXPECT_EQ(event.count, 51U - world);
        }
        if (batch == 3) {
          EXPECT_EQ(event.value, UINT64_MAX);
          EXPECT_EQ(event.count, 50U);
        }
      }
    }
  }
}

TEST(GlooGroups, NobodysBarrierEndsBeforeAllPosted) {
  const MeetingPlace place;
  GlooTeam team(place, 4);
  team.meet(kGroup);
  for (std::uint64_t batch = 1; batch <= 20; ++batch) {
    const auto last = static_cast<std::uint32_t>(batch % 4);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      if (rank != last) team.at(rank).groups().post(control(kGroup, batch, BatchKind::kBarrier));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(batch < 3 ? 100 : 2));
    for (std::uint32_t rank = 0; rank < 4; ++rank) EXPECT_EQ(team.at(rank).untaken(), 0U);
    team.at(last).groups().post(control(kGroup, batch, BatchKind::kBarrier));
    for (const GroupEvent& event : team.take_all()) {
      EXPECT_EQ(event.outcome, Outcome::kOk);
      EXPECT_EQ(event.batch.value, batch);
    }
  }
}

TEST(GlooGroups, WhatDoesNotFitEndsForAllAsMismatchAndTheGroupGoesOn) {
  const MeetingPlace place;
  GlooTeam team(place, 4);
  team.meet(kGroup);
  std::uint64_t batch = 0;
  const auto misfit = [&](auto&& change) {
    ++batch;
    team.post_all([&](std::uint32_t rank) {
      BatchWish wish = control(kGroup, batch, BatchKind::kSum, 1);
      change(rank, wish);
      return wish;
    });
    for (const GroupEvent& event : team.take_all()) EXPECT_EQ(event.outcome, Outcome::kMismatch) << batch;
    ++batch;
    team.post_all([&](std::uint32_t) { return control(kGroup, batch, BatchKind::kSum, 1); });
    for (const GroupEvent& event : team.take_all()) {
      EXPECT_EQ(event.outcome, Outcome::kOk) << batch;
      EXPECT_EQ(event.value, 4U);
    }
  };
  misfit([](std::uint32_t rank, BatchWish& wish) { wish.tag += rank == 2 ? 1 : 0; });
  misfit([](std::uint32_t rank, BatchWish& wish) { wish.kind = rank == 3 ? BatchKind::kMin : BatchKind::kSum; });
  misfit([](std::uint32_t rank, BatchWish& wish) {
    wish.kind = BatchKind::kReduce;
    wish.sums.resize(rank == 1 ? 11 : 10);
  });
  // Only one pair disagrees about its size.
  misfit([](std::uint32_t rank, BatchWish& wish) {
    wish.kind = rank == 0 ? BatchKind::kSend : BatchKind::kReceive;
    if (rank == 0) wish.sends.push_back(filled(1, 100, 1));
    if (rank == 1) wish.receives.push_back({0, std::vector<std::byte>(101)});
  });
  misfit([](std::uint32_t rank, BatchWish& wish) {
    wish.kind = BatchKind::kSend;
    if (rank == 0) wish.sends = {filled(4, 1, 1)};  // No such rank.
  });
}

TEST(GlooGroups, BytesArriveBetweenAllPairsAtOnce) {
  const MeetingPlace place;
  GlooTeam team(place, 3);
  team.meet(kGroup);
  std::uint64_t batch = 0;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{8} << 20, std::size_t{1}}) {
    ++batch;
    team.post_all([&](std::uint32_t rank) {
      BatchWish wish = control(kGroup, batch, rank == 0 ? BatchKind::kReceive : BatchKind::kSend);
      for (std::uint32_t peer = 0; peer < 3; ++peer) {
        if (peer == rank) continue;
        wish.sends.push_back(filled(peer, bytes, seed_of(rank, peer)));
        wish.receives.push_back({2 - peer != rank ? 2 - peer : peer, {}});
      }
      // Peers are met in another order than ranks, each with the right size.
      wish.receives = {};
      for (std::uint32_t peer = 3; peer-- > 0;) {
        if (peer != rank) wish.receives.push_back({peer, std::vector<std::byte>(bytes)});
      }
      return wish;
    });
    const std::vector<GroupEvent> events = team.take_all();
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(events[rank].outcome, Outcome::kOk);
      ASSERT_EQ(events[rank].received.size(), 2U);
      EXPECT_EQ(events[rank].sent.size(), 2U);
      for (const PeerBytes& got : events[rank].received) {
        EXPECT_EQ(got.bytes, filled(rank, bytes, seed_of(got.rank, rank)).bytes) << rank << " from " << got.rank;
      }
    }
  }
}

// As in a liveness exchange: some only send, others only receive, one does neither.
TEST(GlooGroups, SendersMeetReceivers) {
  const MeetingPlace place;
  GlooTeam team(place, 4);
  team.meet(kGroup);
  team.post_all([](std::uint32_t rank) {
    BatchWish wish = control(kGroup, 1, rank < 2 ? BatchKind::kReceive : BatchKind::kSend);
    if (rank == 2) wish.sends = {filled(1, 400, 3), filled(0, 400, 4)};
    if (rank < 2) wish.receives = {{2, std::vector<std::byte>(400)}};
    return wish;
  });
  const std::vector<GroupEvent> events = team.take_all();
  for (const GroupEvent& event : events) ASSERT_EQ(event.outcome, Outcome::kOk);
  EXPECT_EQ(events[0].received[0].bytes, filled(0, 400, 4).bytes);
  EXPECT_EQ(events[1].received[0].bytes, filled(1, 400, 3).bytes);
}

TEST(GlooGroups, SumsAreThoseOfTheOrderOfRanks) {
  for (const std::uint32_t world : {1U, 3U, 4U}) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{2}, std::size_t{100'003}}) {
      const MeetingPlace place;
      GlooTeam team(place, world);
      team.meet(kGroup);
      const auto number = [](std::uint32_t rank, std::size_t i) {
        return static_cast<float>((i * 2'654'435'761U + rank * 40'503U) % 1'000'003) / 997.0F - 300.0F;
      };
      team.post_all([&](std::uint32_t rank) {
        BatchWish wish = control(kGroup, 1, BatchKind::kReduce, rank, 1);
        for (std::size_t i = 0; i < size; ++i) wish.sums.push_back(number(rank, i));
        for (std::int64_t i = 0; i < 5; ++i) wish.statuses.push_back(rank % 2 == 0 ? i : -3 * i);
        return wish;
      });
      std::vector<float> sums(size);
      for (std::size_t i = 0; i < size; ++i) {
        sums[i] = number(0, i);
        for (std::uint32_t rank = 1; rank < world; ++rank) sums[i] += number(rank, i);
      }
      for (const GroupEvent& event : team.take_all()) {
        EXPECT_EQ(event.outcome, Outcome::kOk);
        EXPECT_EQ(event.value, world * (world - 1) / 2);
        EXPECT_EQ(event.count, world);
        EXPECT_TRUE(event.sums == sums) << world << " " << size;
        ASSERT_EQ(event.statuses.size(), 5U);
        const std::int64_t even = (world + 1) / 2;
        const std::int64_t odd = world / 2;
        for (std::int64_t i = 0; i < 5; ++i) {
          EXPECT_EQ(event.statuses[static_cast<std::size_t>(i)], even * i - odd * 3 * i);
        }
      }
    }
  }
}

// A member that ended its last batch may be gone while others still wait for the cards of that batch.
TEST(GlooGroups, LeavingAfterABarrierHurtsNobody) {
  const MeetingPlace place;
  for (std::uint64_t round = 1; round <= 10; ++round) {
    GlooTeam team(place, 4);
    team.meet(GroupId{round});
    std::vector<std::jthread> threads;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      threads.emplace_back([&team, rank, round] {
        for (std::uint64_t batch = 1; batch <= 3; ++batch) {
          team.at(rank).groups().post(control(GroupId{round}, batch, BatchKind::kBarrier));
          EXPECT_EQ(team.at(rank).take().outcome, Outcome::kOk);
        }
        team.at(rank).groups().leave(GroupId{round});
        team.at(rank).end();
      });
    }
  }
}

TEST(GlooGroups, GroupsOneAfterTheOtherLeakNothing) {
  const MeetingPlace place;
  GlooTeam team(place, 2);
  std::size_t files = 0;
  std::size_t threads = 0;
  for (std::uint64_t group = 1; group <= 50; ++group) {
    team.meet(GroupId{group});
    team.post_all([&](std::uint32_t) { return control(GroupId{group}, 1, BatchKind::kSum, 1); });
    for (const GroupEvent& event : team.take_all()) EXPECT_EQ(event.value, 2U);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      if (group % 2 == 0) {
        team.at(rank).groups().leave(GroupId{group});
      } else {
        team.at(rank).groups().abort(GroupId{group});
        EXPECT_EQ(team.at(rank).take().what, What::kAborted);
      }
    }
    if (group % 10 != 0) continue;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // The keepers tidy up.
    if (group == 10) {
      files = entries_of("/proc/self/fd");
      threads = entries_of("/proc/self/task");
    }
    EXPECT_EQ(entries_of("/proc/self/fd"), files) << group;
    EXPECT_EQ(entries_of("/proc/self/task"), threads) << group;
  }
  EXPECT_TRUE(place.empty());
}

}  // namespace areal::test
