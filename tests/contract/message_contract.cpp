// Contract of messages: they say who sent them, come whole, and belong to processes that live.
#include <algorithm>

#include "tests/contract/port_contract.h"

namespace areal::test {
namespace {

port::Send word_to(NodeId to, SlotId slot, std::uint64_t value) {
  return {to, slot, port::MessageKind::kOneWay, {}, to_record(Word{value})};
}

}  // namespace

TEST_P(MessageContract, AMessageSaysWhoSentItAndWhat) {
  const port::Send asked{room().node(Seat::kTrainer), kSecond, port::MessageKind::kRequest, RequestId{42},
                         to_record(Word{99})};
  at(Seat::kEngine).transport().send(kSecond, asked);
  EXPECT_EQ(told_in_all(Seat::kTrainer), 0U);
  room().settle();
  const auto messages = told<port::MessageIn>(Seat::kTrainer, kSecond);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].from, room().node(Seat::kEngine));
  EXPECT_EQ(messages[0].from_incarnation, room().incarnation(Seat::kEngine));
  EXPECT_EQ(messages[0].from_slot, kSecond);
  EXPECT_EQ(messages[0].kind, port::MessageKind::kRequest);
  EXPECT_EQ(messages[0].request.value, 42U);
  EXPECT_EQ(messages[0].body, to_record(Word{99}));
  EXPECT_EQ(told_in_all(Seat::kTrainer), 1U);
  EXPECT_EQ(told_in_all(Seat::kEngine), 0U);
}

TEST_P(MessageContract, OnAHealthyNetworkEveryMessageArrivesOnce) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    at(Seat::kEngine).transport().send(kFirst, word_to(room().node(Seat::kOther), kFirst, i));
  }
  room().settle();
  std::vector<std::uint64_t> values;
  for (const port::MessageIn& message : told<port::MessageIn>(Seat::kOther)) {
    dispatch_record<Word>(message.body, [&](const Word& word) { values.push_back(word.value); });
  }
  std::ranges::stable_sort(values);
  ASSERT_EQ(values.size(), 20U);
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(values[i], i);
}

TEST_P(MessageContract, ARestartedSenderHasAGreaterIncarnation) {
  const Incarnation before = room().incarnation(Seat::kTrainer);
  room().kill(Seat::kTrainer);
  room().restart(Seat::kTrainer);
  at(Seat::kTrainer).transport().send(kFirst, word_to(room().node(Seat::kOther), kFirst, 1));
  room().settle();
  const auto messages = told<port::MessageIn>(Seat::kOther);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_GT(messages[0].from_incarnation, before);
  EXPECT_EQ(messages[0].from_incarnation, room().incarnation(Seat::kTrainer));
}

TEST_P(MessageContract, AMessageToADeadProcessIsNotKeptForTheNext) {
  room().kill(Seat::kTrainer);
  at(Seat::kEngine).transport().send(kFirst, word_to(room().node(Seat::kTrainer), kFirst, 1));
  room().settle();
  room().restart(Seat::kTrainer);
  room().settle();
  EXPECT_TRUE(told<port::MessageIn>(Seat::kTrainer).empty());
}

TEST_P(MessageContract, TheNextProcessHearsWhatIsSentToIt) {
  const NodeId trainer = room().node(Seat::kTrainer);
  at(Seat::kEngine).transport().send(kFirst, word_to(trainer, kFirst, 1));
  room().settle();
  ASSERT_EQ(told<port::MessageIn>(Seat::kTrainer).size(), 1U);
  room().kill(Seat::kTrainer);
  room().settle();
  at(Seat::kEngine).transport().send(kFirst, word_to(trainer, kFirst, 2));
  room().restart(Seat::kTrainer);
  at(Seat::kEngine).transport().send(kFirst, word_to(trainer, kFirst, 3));
  room().settle();
  const auto messages = told<port::MessageIn>(Seat::kTrainer);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].body, to_record(Word{3}));
}

TEST_P(MessageContract, AMessageToOneselfArrives) {
  const NodeId engine = room().node(Seat::kEngine);
  at(Seat::kEngine).transport().send(kFirst, word_to(engine, kSecond, 5));
  EXPECT_EQ(told_in_all(Seat::kEngine), 0U);
  room().settle();
  const auto messages = told<port::MessageIn>(Seat::kEngine, kSecond);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].from, engine);
  EXPECT_EQ(messages[0].from_incarnation, room().incarnation(Seat::kEngine));
  EXPECT_EQ(messages[0].body, to_record(Word{5}));
}

TEST_P(MessageContract, AMessageToNobodyHarmsNobody) {
  at(Seat::kEngine).transport().send(kFirst, word_to(NodeId{0}, kFirst, 1));
  at(Seat::kEngine).transport().send(kFirst, word_to(NodeId{1'000'000}, kFirst, 1));
  at(Seat::kEngine).transport().send(kFirst, word_to(room().node(Seat::kOther), SlotId{9}, 1));
  room().settle();
  EXPECT_EQ(told_in_all(Seat::kEngine) + told_in_all(Seat::kOther), 0U);
}

}  // namespace areal::test
