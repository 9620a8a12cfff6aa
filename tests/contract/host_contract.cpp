// Contract of device memory, the store and processes: limits hold, values last, ports and starts are told once.
#include <algorithm>

#include "tests/contract/port_contract.h"

namespace areal::test {
namespace {

using port::MemoryTag;
using port::Outcome;

Digest128 value_of(std::uint64_t word) { return {word, word + 1}; }

}  // namespace

// ---- Device memory ----

TEST_P(MemoryContract, ReserveRefusesBeyondTheCapacity) {
  const std::uint64_t all = room().facts().memory;
  port::DeviceMemory& memory = at(Seat::kEngine).memory();
  memory.reserve(kFirst, {BufferId{1}, all + 1, MemoryTag::kStaging});
  EXPECT_EQ(told_in_all(Seat::kEngine), 0U);
  room().settle();
  memory.reserve(kFirst, {BufferId{2}, all, MemoryTag::kStaging});
  room().settle();
  memory.reserve(kFirst, {BufferId{3}, 1, MemoryTag::kKvCache});
  room().settle();
  const auto ready = told<port::BufferReady>(Seat::kEngine);
  ASSERT_EQ(ready.size(), 3U);
  const Outcome expected[] = {Outcome::kNoMemory, Outcome::kOk, Outcome::kNoMemory};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ready[i].buffer.value, i + 1);
    EXPECT_EQ(ready[i].outcome, expected[i]);
  }
}

TEST_P(MemoryContract, ReserveRefusesWhatNoNumberHolds) {
  port::DeviceMemory& memory = at(Seat::kEngine).memory();
  memory.reserve(kFirst, {BufferId{1}, 1'000, MemoryTag::kStaging});
  room().settle();
  memory.reserve(kFirst, {BufferId{2}, UINT64_MAX, MemoryTag::kStaging});
  room().settle();
  const auto ready = told<port::BufferReady>(Seat::kEngine);
  ASSERT_EQ(ready.size(), 2U);
  EXPECT_EQ(ready[0].outcome, Outcome::kOk);
  EXPECT_EQ(ready[1].outcome, Outcome::kNoMemory);
}

TEST_P(MemoryContract, ReleaseFrees) {
  const std::uint64_t all = room().facts().memory;
  port::DeviceMemory& memory = at(Seat::kEngine).memory();
  memory.reserve(kFirst, {BufferId{1}, all, MemoryTag::kStaging});
  room().settle();
  memory.release(kFirst, {BufferId{1}});
  room().settle();
  memory.reserve(kFirst, {BufferId{1}, all, MemoryTag::kStaging});
  room().settle();
  const auto released = told<port::BufferReleased>(Seat::kEngine);
  ASSERT_EQ(released.size(), 1U);
  EXPECT_EQ(released[0].buffer.value, 1U);
  const auto ready = told<port::BufferReady>(Seat::kEngine);
  ASSERT_EQ(ready.size(), 2U);
  EXPECT_EQ(ready[1].outcome, Outcome::kOk);
}

TEST_P(MemoryContract, UseIsCountedByTag) {
  port::DeviceMemory& memory = at(Seat::kEngine).memory();
  memory.reserve(kFirst, {BufferId{1}, 1'000, MemoryTag::kStaging});
  memory.reserve(kFirst, {BufferId{2}, 500, MemoryTag::kStaging});
  memory.reserve(kFirst, {BufferId{3}, 70, MemoryTag::kKvCache});
  room().settle();
  memory.release(kFirst, {BufferId{2}});
  room().settle();
  memory.used(kSecond, {OpId{8}, MemoryTag::kStaging});
  memory.used(kSecond, {OpId{9}, MemoryTag::kKvCache});
  room().settle();
  const auto used = told<port::MemoryUsed>(Seat::kEngine, kSecond);
  ASSERT_EQ(used.size(), 2U);
  for (const port::MemoryUsed& one : used) EXPECT_EQ(one.bytes, one.op.value == 8 ? 1'000U : 70U);
}

TEST_P(MemoryContract, ADeadProcessHoldsNothing) {
  const std::uint64_t all = room().facts().memory;
  at(Seat::kTrainer).memory().reserve(kFirst, {BufferId{1}, all, MemoryTag::kStaging});
  room().settle();
  room().kill(Seat::kTrainer);
  room().restart(Seat::kTrainer);
  at(Seat::kTrainer).memory().reserve(kFirst, {BufferId{1}, all, MemoryTag::kStaging});
  room().settle();
  ASSERT_EQ(told<port::BufferReady>(Seat::kTrainer).size(), 1U);
  EXPECT_EQ(told<port::BufferReady>(Seat::kTrainer)[0].outcome, Outcome::kOk);
}

// ---- Store ----

TEST_P(StoreContract, PutIsCompareAndSet) {
  port::Store& store = at(Seat::kEngine).store();
  store.put_if(kFirst, {OpId{1}, 5, {}, value_of(10)});
  EXPECT_EQ(told_in_all(Seat::kEngine), 0U);
  room().settle();
  store.put_if(kFirst, {OpId{2}, 5, {}, value_of(20)});
  room().settle();
  store.put_if(kFirst, {OpId{3}, 5, value_of(10), value_of(30)});
  room().settle();
  store.get(kFirst, {OpId{4}, 5});
  room().settle();
  const auto done = told<port::StoreDone>(Seat::kEngine);
  ASSERT_EQ(done.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(done[i].op.value, i + 1);
  EXPECT_EQ(done[0].outcome, Outcome::kOk);
  EXPECT_EQ(done[1].outcome, Outcome::kMismatch);
  EXPECT_EQ(done[1].value, value_of(10));
  EXPECT_EQ(done[2].outcome, Outcome::kOk);
  EXPECT_EQ(done[3].outcome, Outcome::kOk);
  EXPECT_EQ(done[3].value, value_of(30));
}

TEST_P(StoreContract, OfTwoWhoPutAtOnceOneWins) {
  at(Seat::kEngine).store().put_if(kFirst, {OpId{1}, 6, {}, value_of(1)});
  at(Seat::kTrainer).store().put_if(kFirst, {OpId{1}, 6, {}, value_of(2)});
  room().settle();
  const auto first = told<port::StoreDone>(Seat::kEngine);
  const auto second = told<port::StoreDone>(Seat::kTrainer);
  ASSERT_EQ(first.size(), 1U);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_NE(first[0].outcome == Outcome::kOk, second[0].outcome == Outcome::kOk);
  EXPECT_EQ(first[0].value, second[0].value);  // The loser is told what is there.
}

TEST_P(StoreContract, WhatIsAbsentIsZeroAndNotOk) {
  at(Seat::kEngine).store().get(kFirst, {OpId{1}, 404});
  room().settle();
  const auto done = told<port::StoreDone>(Seat::kEngine);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_NE(done[0].outcome, Outcome::kOk);
  EXPECT_EQ(done[0].value, Digest128{});
}

TEST_P(StoreContract, WhatOnePutsAllGet) {
  at(Seat::kEngine).store().put_if(kFirst, {OpId{1}, 8, {}, value_of(4)});
  room().settle();
  for (const Seat seat : {Seat::kTrainer, Seat::kOther, Seat::kGuard}) {
    at(seat).store().get(kSecond, {OpId{2}, 8});
    room().settle();
    const auto done = told<port::StoreDone>(seat, kSecond);
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].outcome, Outcome::kOk);
    EXPECT_EQ(done[0].value, value_of(4));
  }
}

TEST_P(StoreContract, ValuesOutliveTheProcessThatPutThem) {
  at(Seat::kTrainer).store().put_if(kFirst, {OpId{1}, 7, {}, value_of(3)});
  room().settle();
  ASSERT_EQ(told<port::StoreDone>(Seat::kTrainer).size(), 1U);
  room().kill(Seat::kTrainer);
  room().restart(Seat::kTrainer);
  at(Seat::kTrainer).store().get(kFirst, {OpId{2}, 7});
  room().settle();
  const auto done = told<port::StoreDone>(Seat::kTrainer);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].value, value_of(3));
}

// ---- Processes ----

TEST_P(ProcessContract, LeasedPortsOfAHostAreDistinctUntilReleased) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    at(Seat::kGuard).process().lease_port(kFirst, {OpId{i + 1}});
    at(Seat::kOther).process().lease_port(kFirst, {OpId{i + 1}});
  }
  EXPECT_EQ(told_in_all(Seat::kGuard), 0U);
  room().settle();
  std::vector<std::uint16_t> ports;
  for (const Seat seat : {Seat::kGuard, Seat::kOther}) {
    const auto leased = told<port::PortLeased>(seat);
    ASSERT_EQ(leased.size(), 20U);
    for (const port::PortLeased& one : leased) {
      EXPECT_EQ(one.outcome, Outcome::kOk);
      EXPECT_NE(one.port, 0U);
      ports.push_back(one.port);
    }
  }
  std::ranges::stable_sort(ports);
  EXPECT_EQ(std::ranges::adjacent_find(ports), ports.end());
  for (const std::uint16_t port : ports) at(Seat::kGuard).process().release_port(kFirst, {port});
  at(Seat::kGuard).process().lease_port(kSecond, {OpId{99}});
  room().settle();
  ASSERT_EQ(told<port::PortLeased>(Seat::kGuard, kSecond).size(), 1U);
  EXPECT_EQ(told<port::PortLeased>(Seat::kGuard, kSecond)[0].outcome, Outcome::kOk);
}

TEST_P(ProcessContract, StartAndExitAreToldOnceWhereTheyWereAskedFor) {
  const NodeId trainer = room().node(Seat::kTrainer);
  at(Seat::kGuard).process().stop(kSecond, {trainer, 1_s});
  room().settle();
  at(Seat::kGuard).process().start(kSecond, {OpId{31}, trainer, 12'345});
  room().settle();
  const auto started = told<port::ProcessStarted>(Seat::kGuard, kSecond);
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].op.value, 31U);
  EXPECT_EQ(started[0].node, trainer);
  EXPECT_EQ(started[0].outcome, Outcome::kOk);
  EXPECT_EQ(started[0].incarnation, room().incarnation(Seat::kTrainer));
  const auto begun = told<port::Started>(Seat::kTrainer);
  ASSERT_EQ(begun.size(), 1U);
  EXPECT_EQ(begun[0].incarnation, started[0].incarnation);
  EXPECT_EQ(begun[0].port, 12'345U);
  EXPECT_EQ(told<port::Started>(Seat::kTrainer, kSecond).size(), 1U);
  room().kill(Seat::kTrainer);
  room().settle();
  const auto exited = told<port::ProcessExited>(Seat::kGuard, kSecond);
  ASSERT_EQ(exited.size(), 1U);
  EXPECT_EQ(exited[0].node, trainer);
  EXPECT_EQ(exited[0].incarnation, started[0].incarnation);
}

// Whoever hears that it started may ask something of it at once.
TEST_P(ProcessContract, AStartedProcessCanBeWrittenTo) {
  const NodeId trainer = room().node(Seat::kTrainer);
  room().kill(Seat::kTrainer);
  room().settle();
  at(Seat::kGuard).process().start(kFirst, {OpId{31}, trainer, 0});
  for (int i = 0; i < 30'000 && told<port::ProcessStarted>(Seat::kGuard).empty(); ++i) room().pass(1_ms);
  ASSERT_EQ(told<port::ProcessStarted>(Seat::kGuard).size(), 1U);
  for (const Seat seat : {Seat::kGuard, Seat::kOther}) {
    at(seat).transport().send(kFirst, {trainer, kFirst, port::MessageKind::kOneWay, {}, to_record(Word{1})});
  }
  room().settle();
  EXPECT_EQ(told<port::MessageIn>(Seat::kTrainer).size(), 2U);
}

TEST_P(ProcessContract, AProcessThatRunsIsNotStartedAgain) {
  const Incarnation before = room().incarnation(Seat::kTrainer);
  at(Seat::kGuard).process().start(kFirst, {OpId{1}, room().node(Seat::kTrainer), 0});
  room().settle();
  const auto started = told<port::ProcessStarted>(Seat::kGuard);
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].outcome, Outcome::kRefused);
  EXPECT_EQ(room().incarnation(Seat::kTrainer), before);
}

TEST_P(ProcessContract, AnUnknownProcessIsNotStarted) {
  at(Seat::kGuard).process().start(kFirst, {OpId{1}, NodeId{1'000'000}, 0});
  EXPECT_EQ(told_in_all(Seat::kGuard), 0U);
  room().settle();
  const auto started = told<port::ProcessStarted>(Seat::kGuard);
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].outcome, Outcome::kRefused);
}

TEST_P(ProcessContract, StoppingWhatDoesNotRunSaysNothing) {
  room().kill(Seat::kTrainer);
  room().settle();
  const std::size_t before = told_in_all(Seat::kGuard);
  at(Seat::kGuard).process().stop(kFirst, {room().node(Seat::kTrainer), 1_s});
  room().settle();
  EXPECT_EQ(told_in_all(Seat::kGuard), before);
}

TEST_P(ProcessContract, StoppingEndsInOneExit) {
  at(Seat::kGuard).process().stop(kFirst, {room().node(Seat::kTrainer), 1_s});
  at(Seat::kGuard).process().stop(kFirst, {room().node(Seat::kTrainer), 1_s});
  room().settle();
  EXPECT_EQ(told<port::ProcessExited>(Seat::kGuard).size(), 1U);
}

}  // namespace areal::test
