// Contract of compute: operations end once, in order but for generation, which can be stopped, parked and resumed.
#include "tests/contract/port_contract.h"

namespace areal::test {
namespace {

using port::ComputeKind;
using port::Outcome;

constexpr Seat kEngine = Seat::kEngine;
constexpr Seat kTrainer = Seat::kTrainer;

std::uint64_t tokens(const std::vector<port::ComputeDone>& done) {
  std::uint64_t sum = 0;
  for (const port::ComputeDone& one : done) sum += one.count;
  return sum;
}

}  // namespace

TEST_P(ComputeContract, AnOperationEndsOnceWithItsId) {
  ask(kEngine, 11, ComputeKind::kLoadModel);
  EXPECT_EQ(told_in_all(kEngine), 0U);
  room().settle();
  ASSERT_EQ(done(kEngine).size(), 1U);
  const port::ComputeDone loaded = done(kEngine)[0];
  EXPECT_EQ(loaded.op.value, 11U);
  EXPECT_EQ(loaded.what, ComputeKind::kLoadModel);
  EXPECT_EQ(loaded.outcome, Outcome::kOk);
  EXPECT_GT(loaded.total, 0U);
  EXPECT_NE(loaded.digest, Digest128{});
}

TEST_P(ComputeContract, OperationsRunInTheOrderAskedFor) {
  ask(kTrainer, 1, ComputeKind::kLoadModel);
  ask(kTrainer, 2, ComputeKind::kTrainStep, 1, 123, 1);
  ask(kTrainer, 3, ComputeKind::kPack, 1);
  ask(kTrainer, 4, ComputeKind::kFence);
  room().settle();
  const auto ended = done(kTrainer);
  ASSERT_EQ(ended.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(ended[i].op.value, i + 1);
    EXPECT_EQ(ended[i].outcome, Outcome::kOk);
  }
  EXPECT_NE(ended[0].digest, ended[1].digest);
  EXPECT_GT(ended[2].count, 0U);
}

// Weights of another version must not be sent under this version's name.
TEST_P(ComputeContract, PackingAVersionThatIsNotHeldIsAMismatch) {
  ask(kTrainer, 1, ComputeKind::kLoadModel);
  ask(kTrainer, 2, ComputeKind::kPack, 3);
  room().settle();
  ASSERT_EQ(done(kTrainer).size(), 2U);
  EXPECT_EQ(done(kTrainer)[1].outcome, Outcome::kMismatch);
}

TEST_P(ComputeContract, WhatArrivesIsWhatLeft) {
  const GroupId group{5};
  ask(kEngine, 1, ComputeKind::kLoadModel);
  ask(kTrainer, 1, ComputeKind::kLoadModel);
  ask(kTrainer, 2, ComputeKind::kTrainStep, 1, 123, 1);
  ask(kTrainer, 3, ComputeKind::kPack, 1);
  at(kEngine).transport().join(kFirst, {group, port::Backend::kNccl, 0, 2, 20'000});
  at(kTrainer).transport().join(kFirst, {group, port::Backend::kNccl, 1, 2, 20'000});
  room().settle();
  const std::vector<DType> passes = room().facts().payload;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    port::PostBatch batch{.group = group, .batch = BatchId{i + 1}, .kind = port::BatchKind::kSend, .tag = i + 1};
    batch.part = static_cast<std::uint32_t>(i);
    batch.buffer = BufferId{1};
    batch.version = 1;
    batch.dtype = passes[i];
    at(kTrainer).transport().post(kFirst, batch);
    batch.kind = port::BatchKind::kReceive;
    at(kEngine).transport().post(kFirst, batch);
  }
  room().settle();
  for (const Seat seat : {kEngine, kTrainer}) {
    const auto batches = told<port::BatchDone>(seat);
    ASSERT_EQ(batches.size(), passes.size());
    for (const port::BatchDone& batch : batches) EXPECT_EQ(batch.outcome, Outcome::kOk);
  }
  ask(kEngine, 2, ComputeKind::kVerify);
  ask(kEngine, 3, ComputeKind::kApply, 1);
  ask(kEngine, 4, ComputeKind::kFence);
  room().settle();
  ASSERT_EQ(done(kEngine).size(), 4U);
  ASSERT_EQ(done(kTrainer).size(), 3U);
  EXPECT_EQ(done(kEngine)[1].count, done(kTrainer)[2].count);
  EXPECT_EQ(done(kEngine)[1].digest, done(kTrainer)[2].digest);
  EXPECT_EQ(done(kEngine)[2].count, done(kEngine)[2].total);
  EXPECT_EQ(done(kEngine)[3].digest, done(kEngine)[2].digest);
  EXPECT_NE(done(kEngine)[3].digest, done(kEngine)[0].digest);
}

TEST_P(ComputeContract, GenerationRunsBesideEverythingElse) {
  ask(kEngine, 1, ComputeKind::kLoadModel);
  room().settle();
  const std::uint64_t amount = room().facts().max_tokens;
  ask(kEngine, 2, ComputeKind::kGenerate, 0, 100, amount);
  ask(kEngine, 3, ComputeKind::kGenerate, 0, 200, amount);
  ask(kEngine, 4, ComputeKind::kFence);
  room().settle();
  const auto ended = done(kEngine);
  ASSERT_EQ(ended.size(), 4U);
  EXPECT_EQ(ended[1].op.value, 4U);
  for (const std::uint64_t op : {2U, 3U}) {
    ASSERT_EQ(done_of(kEngine, op).size(), 1U);
    EXPECT_GT(done_of(kEngine, op)[0].count, 0U);
    EXPECT_LE(done_of(kEngine, op)[0].count, amount);
    EXPECT_EQ(done_of(kEngine, op)[0].digest, ended[0].digest.high == 0 ? Digest128{} : done_of(kEngine, op)[0].digest);
  }
  EXPECT_EQ(done_of(kEngine, 2)[0].digest, done_of(kEngine, 3)[0].digest);
}

TEST_P(ComputeContract, StoppingEndsOnceWithWhatWasDone) {
  ask(kEngine, 1, ComputeKind::kLoadModel);
  room().settle();
  ask(kEngine, 2, ComputeKind::kGenerate, 0, 100, room().facts().max_tokens);
  room().pass(500_ms);
  at(kEngine).compute().stop(kFirst, {OpId{2}});
  room().settle();
  const auto ended = done_of(kEngine, 2);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].outcome, Outcome::kAborted);
  EXPECT_GT(ended[0].count, 0U);
  EXPECT_LT(ended[0].count, room().facts().max_tokens);
  at(kEngine).compute().stop(kFirst, {OpId{2}});
  at(kEngine).compute().stop(kFirst, {OpId{404}});
  room().settle();
  EXPECT_EQ(done(kEngine).size(), 2U);
}

TEST_P(ComputeContract, AQueuedOperationCanBeStopped) {
  ask(kTrainer, 1, ComputeKind::kLoadModel);
  ask(kTrainer, 2, ComputeKind::kTrainStep, 1, 1);
  ask(kTrainer, 3, ComputeKind::kFence);
  at(kTrainer).compute().stop(kFirst, {OpId{2}});
  room().settle();
  ASSERT_EQ(done_of(kTrainer, 2).size(), 1U);
  EXPECT_EQ(done_of(kTrainer, 2)[0].outcome, Outcome::kAborted);
  ASSERT_EQ(done_of(kTrainer, 3).size(), 1U);
  EXPECT_EQ(done_of(kTrainer, 3)[0].outcome, Outcome::kOk);
}

// What is decoded while weights are written belongs to no version: a freeze must close the segment before that.
TEST_P(ComputeContract, FreezingClosesTheSegmentAndThawingGoesOn) {
  ask(kEngine, 1, ComputeKind::kLoadModel);
  room().settle();
  const std::uint64_t amount = room().facts().max_tokens;
  ask(kEngine, 2, ComputeKind::kGenerate, 0, 100, amount);
  room().settle();
  const std::uint64_t whole = tokens(done_of(kEngine, 2));

  ask(kEngine, 3, ComputeKind::kGenerate, 0, 100, amount);
  room().pass(500_ms);
  at(kEngine).compute().freeze(kFirst, {true});
  at(kEngine).compute().freeze(kFirst, {true});
  room().pass(room().facts().silence);
  ASSERT_EQ(done_of(kEngine, 3).size(), 1U);
  const port::ComputeDone segment = done_of(kEngine, 3)[0];
  EXPECT_EQ(segment.outcome, Outcome::kOk);
  EXPECT_EQ(segment.total, 1U);  // More follows.
  EXPECT_GT(segment.count, 0U);
  EXPECT_LT(segment.count, whole);
  at(kEngine).compute().freeze(kFirst, {false});
  room().settle();
  ASSERT_EQ(done_of(kEngine, 3).size(), 2U);
  EXPECT_EQ(done_of(kEngine, 3)[1].total, 0U);
  EXPECT_EQ(tokens(done_of(kEngine, 3)), whole);
}

TEST_P(ComputeContract, AParkedGenerationCanBeStopped) {
  ask(kEngine, 1, ComputeKind::kLoadModel);
  room().settle();
  ask(kEngine, 2, ComputeKind::kGenerate, 0, 100, room().facts().max_tokens);
  room().pass(500_ms);
  at(kEngine).compute().freeze(kFirst, {true});
  room().settle();
  at(kEngine).compute().stop(kFirst, {OpId{2}});
  at(kEngine).compute().freeze(kFirst, {false});
  room().settle();
  const auto ended = done_of(kEngine, 2);
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_EQ(ended[1].outcome, Outcome::kAborted);
  EXPECT_EQ(ended[1].count, 0U);
}

TEST_P(ComputeContract, OperationsDieWithTheirProcess) {
  ask(kTrainer, 1, ComputeKind::kLoadModel);
  room().kill(kTrainer);
  room().restart(kTrainer);
  room().settle();
  EXPECT_TRUE(done(kTrainer).empty());
}

}  // namespace areal::test
