// The tiny engine: what trainers send is what every engine comes to hold, on every layout.
#include "engine/node/tiny_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <ostream>

#include "engine/delta/element_digest.h"
#include "engine/node/tiny_replica.h"
#include "engine/node/tiny_trainer.h"

namespace areal::node {
namespace {

using config::ParallelStrategy;

struct Sent {
  std::uint64_t elements = 0;
  std::uint64_t low = 0;  // Low word of the sum over them.
  Digest128 digest;       // What engines should hold then.
};

struct Fleet {
  explicit Fleet(TinyShapePtr made, AliasStorage storage = AliasStorage::kShared) : shape(std::move(made)) {
    const proto::PlanWorld& world = shape->world();
    for (std::uint32_t rank = 0; rank < world.train_world; ++rank) trainers.emplace_back(shape, rank);
    for (std::uint32_t rank = 0; rank < world.infer_world; ++rank) {
      replicas.emplace_back(shape, rank / world.instance(), rank % world.instance(), storage);
    }
  }

  void step(std::uint64_t seed) {
    for (TinyTrainer& trainer : trainers) trainer.step(seed);
  }
  // Moves everything into staging; returns what was sent.
  Sent transfer() {
    Sent sent;
    delta::ElementSum sum;
    for (const TinyTrainer& trainer : trainers) {
      const Packed packed = trainer.pack();
      for (const PackedStream& stream : packed.streams) {
        EXPECT_TRUE(replicas[stream.receiver].land(trainer.transfer_rank(), stream.bits));
      }
      sum.add(packed.digest);
      sent.elements += packed.elements;
      sent.low += packed.sent;
    }
    sent.digest = sum.digest();
    return sent;
  }
  [[nodiscard]] Digest128 due() const {
    delta::ElementSum sum;
    for (const TinyTrainer& trainer : trainers) sum.add(trainer.pack().digest);
    return sum.digest();
  }
  [[nodiscard]] TinyReplica::Verified arrived() const {
    TinyReplica::Verified all;
    delta::ElementSum sum;
    for (const TinyReplica& replica : replicas) {
      const TinyReplica::Verified verified = replica.verify();
      sum.add(verified.digest);
      all.elements += verified.elements;
    }
    all.digest = sum.digest();
    return all;
  }
  void apply() {
    for (TinyReplica& replica : replicas) {
      const TinyReplica::Applied applied = replica.apply();
      EXPECT_EQ(applied.written, applied.total);
    }
  }
  [[nodiscard]] Digest128 engine_digest(std::uint32_t engine) const {
    delta::ElementSum sum;
    const std::uint32_t instance = shape->world().instance();
    for (std::uint32_t i = 0; i < instance; ++i) sum.add(replicas[engine * instance + i].digest());
    return sum.digest();
  }
  [[nodiscard]] Digest128 all_engines() const {
    delta::ElementSum sum;
    for (std::uint32_t engine = 0; engine < shape->world().engines; ++engine) sum.add(engine_digest(engine));
    return sum.digest();
  }

  TinyShapePtr shape;
  std::vector<TinyTrainer> trainers;
  std::vector<TinyReplica> replicas;
};

TinyShapePtr shape_of(std::string_view model, const TinyRequest& request) {
  const Result<config::ModelSpec> full = config::model_by_name(model);
  EXPECT_TRUE(full);
  Result<TinyShapePtr> shape = make_tiny_shape(*full, request, proto::RenamePolicy());
  EXPECT_TRUE(shape) << (shape ? "" : shape.error().detail);
  return shape ? *shape : nullptr;
}

struct Layout {
  std::string_view model;
  ParallelStrategy train;
  ParallelStrategy infer;
  std::uint32_t engines;
};

void PrintTo(const Layout& layout, std::ostream* out) {
  *out << layout.model << ", " << layout.train.world_size() << " training ranks, " << layout.engines << " engines of "
       << layout.infer.world_size();
}

class TinyLayouts : public testing::TestWithParam<Layout> {
 protected:
  static Fleet fleet() {
    const Layout& layout = GetParam();
    return Fleet(shape_of(layout.model, {.train = layout.train, .infer = layout.infer, .engines = layout.engines}));
  }
};

INSTANTIATE_TEST_SUITE_P(All, TinyLayouts,
                         testing::Values(Layout{"tiny", {}, {}, 1}, Layout{"tiny", {.dp = 1, .tp = 2}, {}, 2},
                                         Layout{"tiny", {.dp = 2, .tp = 2}, {.tp = 4}, 2},
                                         Layout{"tiny", {.dp = 4, .ep = 4}, {.tp = 4, .ep = 2}, 2},
                                         Layout{"tiny", {.dp = 1, .tp = 2, .pp = 2}, {.tp = 2, .pp = 2}, 1},
                                         Layout{"qwen3-0.6b", {.dp = 2, .tp = 2}, {.tp = 2}, 3},
                                         Layout{"qwen3-30b-a3b", {.dp = 8, .ep = 8}, {.tp = 4, .ep = 4}, 2}));

TEST_P(TinyLayouts, VersionZeroIsEqualOnBothSides) {
  Fleet moved = fleet();
  const Digest128 before = moved.all_engines();
  const Sent sent = moved.transfer();
  EXPECT_EQ(sent.digest, before);
  moved.apply();
  EXPECT_EQ(moved.all_engines(), before);
}

TEST_P(TinyLayouts, EnginesComeToHoldWhatWasSent) {
  Fleet moved = fleet();
  Digest128 last = moved.all_engines();
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    moved.step(seed);
    const Sent sent = moved.transfer();
    EXPECT_EQ(moved.arrived().digest.low, sent.low);
    EXPECT_EQ(moved.arrived().elements, sent.elements);
    EXPECT_NE(sent.digest, last);
    moved.apply();
    EXPECT_EQ(moved.all_engines(), sent.digest);
    for (std::uint32_t engine = 1; engine < moved.shape->world().engines; ++engine) {
      EXPECT_EQ(moved.engine_digest(engine), moved.engine_digest(0));
    }
    last = sent.digest;
  }
}

// An engine of one rank holds each element once: its sum depends on the model alone, not on how training was cut.
TEST(TinyEngine, TrainingLayoutDoesNotChangeTheWeights) {
  std::optional<Digest128> wanted;
  std::size_t cells = 0;
  for (const ParallelStrategy& train :
       {ParallelStrategy{}, ParallelStrategy{.dp = 1, .tp = 2}, ParallelStrategy{.dp = 2, .tp = 2},
        ParallelStrategy{.dp = 2, .tp = 1, .pp = 2}}) {
    Fleet moved(shape_of("tiny", {.train = train}));
    for (const std::uint64_t seed : {7ULL, 8ULL, 9ULL}) moved.step(seed);
    moved.transfer();
    moved.apply();
    EXPECT_EQ(moved.replicas[0].elements(), moved.shape->keys.size());
    if (wanted) {
      EXPECT_EQ(moved.engine_digest(0), *wanted);
      EXPECT_EQ(moved.shape->keys.size(), cells);
    }
    wanted = moved.engine_digest(0);
    cells = moved.shape->keys.size();
  }
}

TEST(TinyEngine, DataParallelCopiesStayEqual) {
  Fleet moved(shape_of("tiny", {.train = {.dp = 4}, .engines = 1}));
  for (std::uint64_t seed = 1; seed <= 5; ++seed) moved.step(seed);
  for (const TinyTrainer& trainer : moved.trainers) EXPECT_EQ(trainer.digest(), moved.trainers[0].digest());
  TinyTrainer other = moved.trainers[0];
  other.step(6);
  moved.trainers[0].step(7);
  EXPECT_NE(other.digest(), moved.trainers[0].digest()) << "the batch must matter";
}

// If hardly a bf16 weight moved, a lost update would look like a good one.
TEST(TinyEngine, SomeButNotMostOfTheWeightsChangeAtEachStep) {
  TinyTrainer trainer(shape_of("qwen3-30b-a3b", {.train = {.dp = 1}}), 0);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    trainer.step(seed);
    EXPECT_GT(trainer.changed() * 100, trainer.pack().elements) << seed;
    EXPECT_LT(trainer.changed() * 5, trainer.pack().elements) << seed;
  }
}

TEST(TinyEngine, GradientsFillTheUnitRangeAndDependOnTheStep) {
  float least = 0;
  float most = 0;
  for (std::uint32_t i = 0; i < 4096; ++i) {
    const float gradient = gradient_of(delta::element_key(1, i), 5);
    least = std::min(least, gradient);
    most = std::max(most, gradient);
  }
  EXPECT_GE(least, -1.0F);
  EXPECT_LT(least, -0.8F);
  EXPECT_LT(most, 1.0F);
  EXPECT_GT(most, 0.8F);
  EXPECT_NE(gradient_of(delta::element_key(1, 0), 5), gradient_of(delta::element_key(1, 0), 6));
}

TEST(TinyReplica, AFlippedBitShowsInWhatArrived) {
  Fleet moved(shape_of("tiny", {.infer = {.tp = 2}}));
  EXPECT_FALSE(moved.replicas[0].flip(1)) << "nothing is staged yet";
  const Sent sent = moved.transfer();
  for (std::uint64_t pick = 0; pick < 200; ++pick) {
    TinyReplica hit = moved.replicas[1];
    ASSERT_TRUE(hit.flip(pick * 7919));
    EXPECT_NE(hit.verify().digest, moved.replicas[1].verify().digest);
    ASSERT_TRUE(hit.flip(pick * 7919));
    EXPECT_EQ(hit.verify().digest, moved.replicas[1].verify().digest);
  }
  EXPECT_EQ(moved.arrived().digest.low, sent.low);
}

TEST(TinyReplica, AnApplyThatEndsEarlyLeavesAMixture) {
  Fleet moved(shape_of("tiny", {}));
  TinyReplica& replica = moved.replicas[0];
  const Digest128 before = replica.digest();
  moved.step(1);
  moved.transfer();
  EXPECT_EQ(replica.apply(0).written, 0U);
  EXPECT_EQ(replica.digest(), before);
  const TinyReplica::Applied half = replica.apply(5);
  EXPECT_EQ(half.written, 5U);
  EXPECT_GT(half.total, 5U);
  const Digest128 mixed = replica.digest();
  const TinyReplica::Applied all = replica.apply();
  EXPECT_EQ(all.written, all.total);
  EXPECT_NE(mixed, before);
  EXPECT_NE(mixed, replica.digest());
}

TEST(TinyReplica, WhatOneSenderOwesIsNotCounted) {
  Fleet moved(shape_of("tiny", {.train = {.dp = 1, .tp = 2}}));
  moved.transfer();
  TinyReplica& replica = moved.replicas[0];
  replica.clear_staging();
  EXPECT_EQ(replica.verify().elements, 0U);
  const Packed packed = moved.trainers[1].pack();
  ASSERT_TRUE(replica.land(moved.trainers[1].transfer_rank(), packed.streams[0].bits));
  const TinyReplica::Applied applied = replica.apply();
  EXPECT_LT(applied.written, applied.total);
  EXPECT_FALSE(replica.land(0, packed.streams[0].bits)) << "a receiver sends nothing";
  EXPECT_FALSE(replica.land(moved.trainers[0].transfer_rank(), std::span<const std::uint32_t>{})) << "too short";
}

// The tied alias must not be counted as a tensor: it shares the embedding's storage and no operation writes it.
TEST(TinyReplica, AliasesAreNoTensorsToBeWritten) {
  const TinyShapePtr shape = shape_of("qwen3-0.6b", {});
  ASSERT_EQ(shape->model.aliases.size(), 1U);
  EXPECT_EQ(shape->infer.parameters.size(), shape->model.parameters.size() + 1);
  EXPECT_EQ(TinyReplica(shape, 0, 0).apply().total, shape->model.parameters.size());
}

// If only the storage were summed up, an engine with an old head would look right.
TEST(TinyReplica, DigestsCountAnAliasUnderItsOwnName) {
  Fleet moved(shape_of("qwen3-0.6b", {.train = {.dp = 2, .tp = 2}, .infer = {.tp = 2}}));
  moved.step(1);
  const Sent sent = moved.transfer();
  EXPECT_NE(sent.digest.low, sent.low) << "what is due is more than what is sent";
  moved.apply();
  delta::ElementSum wanted;
  std::uint64_t aliased = 0;
  for (std::uint32_t rank = 0; rank < moved.replicas.size(); ++rank) {
    const TinyReplica& replica = moved.replicas[rank];
    const TinyHolding& holding = moved.shape->replicas[rank];
    for (std::uint32_t i = 0; i < replica.elements(); ++i) {
      wanted.add(delta::digest_of_key(moved.shape->keys[holding.cells[i]], replica.live()[i]));
    }
    for (const TinyPart& part : holding.parts) {
      const config::Parameter& parameter = moved.shape->model.parameters[part.tensor];
      if (moved.shape->model.name_of(parameter) != "model.embed_tokens.weight") continue;
      const std::uint64_t start = rank * parameter.shape.elements() / 2;  // It is cut by rows.
      for (std::uint32_t i = 0; i < part.count; ++i, ++aliased) {
        const std::uint32_t bits = replica.live()[part.first + i];
        wanted.add(delta::element_digest(moved.shape->model.aliases[0].name, start + i, bits));
      }
    }
  }
  EXPECT_GE(aliased, 64U);
  EXPECT_EQ(moved.all_engines(), wanted.digest());
}

// A full transfer loads every name anew; updates of a delta name the source alone.
TEST(TinyReplica, AClonedAliasFollowsFullTransfersAndNoDelta) {
  const TinyShapePtr shape = shape_of("qwen3-0.6b", {.train = {.dp = 1, .tp = 2}});
  Fleet right(shape);
  Fleet cloned(shape, AliasStorage::kCloned);
  EXPECT_EQ(cloned.all_engines(), right.all_engines());
  const auto update = [](Fleet& fleet, bool in_full) {
    for (TinyTrainer& trainer : fleet.trainers) {
      trainer.capture();
      trainer.invert(0, fleet.shape->optimizer.learning_rate, false);
      EXPECT_EQ(trainer.compare(0, false).full, in_full);
      if (in_full) continue;
      for (const PackedStream& stream : trainer.pack_delta().streams) {
        EXPECT_TRUE(fleet.replicas[stream.receiver].land(trainer.transfer_rank(), stream.updates));
      }
    }
    const Digest128 due = in_full ? fleet.transfer().digest : fleet.due();
    fleet.apply();
    for (TinyTrainer& trainer : fleet.trainers) trainer.delta().mark_synced();
    return due;
  };
  for (const std::uint64_t seed : {1ULL, 2ULL, 3ULL}) {
    const bool in_full = seed == 1;
    for (Fleet* fleet : {&right, &cloned}) fleet->step(seed);
    const Digest128 due = update(right, in_full);
    EXPECT_EQ(due, right.all_engines()) << seed;
    EXPECT_EQ(due, update(cloned, in_full)) << seed;
    EXPECT_EQ(cloned.all_engines() == right.all_engines(), in_full) << seed;
  }
  EXPECT_TRUE(std::ranges::equal(cloned.replicas[0].live(), right.replicas[0].live())) << "no tensor shows it";
  TinyReplica copy(shape, 0, 0, AliasStorage::kCloned);
  ASSERT_TRUE(copy.restore(cloned.replicas[0].save()));
  EXPECT_EQ(copy.digest(), cloned.replicas[0].digest());
  EXPECT_FALSE(copy.restore(right.replicas[0].save())) << "it has no clone";
  cloned.transfer();
  cloned.apply();
  EXPECT_EQ(cloned.all_engines(), right.all_engines());
}

class SkipsUnknown final : public proto::NamePolicy {
 public:
  [[nodiscard]] std::string_view engine_name(std::string_view name) const override {
    return name == "model.norm.weight" ? "model.final_norm.weight" : name;
  }
};

// Renamed tensors are the same elements: the sums of both sides still agree.
TEST(TinyEngine, RenamedTensorsKeepTheirElements) {
  const Result<config::ModelSpec> full = config::model_by_name("tiny");
  ASSERT_TRUE(full);
  const Result<TinyShapePtr> shape = make_tiny_shape(*full, {.train = {.dp = 1, .tp = 2}}, SkipsUnknown());
  ASSERT_TRUE(shape) << shape.error().detail;
  Fleet moved(*shape);
  moved.step(3);
  const Sent sent = moved.transfer();
  moved.apply();
  EXPECT_EQ(moved.all_engines(), sent.digest);
  const proto::RenamePolicy plain;
  EXPECT_FALSE(make_tiny_shape(*full, {.engine_names = &plain}, SkipsUnknown())) << "the engines know no such name";
}

TEST(TinyEngine, SavedWordsBringBackTheSameFuture) {
  Fleet moved(shape_of("tiny", {.train = {.dp = 2, .tp = 2}, .infer = {.tp = 2}, .engines = 2}));
  moved.step(1);
  moved.transfer();
  moved.replicas[1].apply(3);
  const std::vector<std::uint64_t> trainer_words = moved.trainers[2].save();
  const std::vector<std::uint64_t> replica_words = moved.replicas[1].save();
  TinyTrainer trainer(moved.shape, 2);
  TinyReplica replica(moved.shape, 0, 1);
  ASSERT_TRUE(trainer.restore(trainer_words));
  ASSERT_TRUE(replica.restore(replica_words));
  EXPECT_EQ(trainer.digest(), moved.trainers[2].digest());
  EXPECT_EQ(trainer.step(9), moved.trainers[2].step(9));
  EXPECT_EQ(trainer.pack().digest, moved.trainers[2].pack().digest);
  EXPECT_EQ(replica.digest(), moved.replicas[1].digest());
  EXPECT_EQ(replica.verify().digest, moved.replicas[1].verify().digest);
  EXPECT_EQ(replica.save(), replica_words);
  for (std::size_t cut = 1; cut < 4; ++cut) {
    EXPECT_FALSE(replica.restore(std::span(replica_words).first(replica_words.size() - cut)));
    EXPECT_FALSE(trainer.restore(std::span(trainer_words).first(trainer_words.size() - cut)));
  }
  EXPECT_EQ(replica.save(), replica_words);
}

TEST(TinyEngine, LoadGoesBackToVersionZero) {
  Fleet moved(shape_of("tiny", {}));
  const Digest128 zero = moved.trainers[0].digest();
  EXPECT_EQ(moved.replicas[0].digest(), zero);
  moved.step(1);
  moved.transfer();
  moved.apply();
  EXPECT_NE(moved.replicas[0].digest(), zero);
  moved.trainers[0].load();
  moved.replicas[0].load();
  EXPECT_EQ(moved.trainers[0].digest(), zero);
  EXPECT_EQ(moved.replicas[0].digest(), zero);
  EXPECT_EQ(moved.trainers[0].steps(), 0U);
}

}  // namespace
}  // namespace areal::node
