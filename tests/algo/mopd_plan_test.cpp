// Settings, mixture, plan and the teacher engine of multi-teacher distillation.
#include "engine/algo/mopd_plan.h"

#include <gtest/gtest.h>

#include <limits>

#include "engine/algo/mopd_mixture.h"
#include "engine/algo/mopd_settings.h"
#include "engine/algo/teacher_residency.h"

namespace areal::algo {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

MopdSettings good() {
  return {.teachers = {{"agriculture", "/a"}, {"swe_agent", "/s"}},
          .routes = {{"single", {{"agriculture", 1.0}}},
                     {"ensemble", {{"swe_agent", 0.7}, {"agriculture", 0.3}}},
                     {"partly", {{"agriculture", 0.0}, {"swe_agent", 2.0}}}},
          .coefficients = {}};
}

TEST(MopdSettings, AcceptsWhatIsGoodAndKeepsItsOrder) {
  EXPECT_TRUE(check_mopd(good()));
  EXPECT_EQ(good().coefficients.rl, 0.0);
  EXPECT_EQ(good().coefficients.distillation, 0.005);
  const auto both = teachers_of(good(), "ensemble").value();
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].teacher, "agriculture") << "in the order of the teachers";
  EXPECT_EQ(both[0].weight, 0.3) << "not normalised";
  ASSERT_EQ(teachers_of(good(), "partly").value().size(), 1U) << "a weight of 0 needs no scoring";
  EXPECT_FALSE(teachers_of(good(), "other"));
}

TEST(MopdSettings, RefusesEachMistake) {
  const auto refused = [](auto change) {
    MopdSettings settings = good();
    change(settings);
    return !check_mopd(settings);
  };
  for (const char* id : {"../teacher", "/teacher", "org/teacher", "", "actor", ".hidden", "swe_agent"}) {
    EXPECT_TRUE(refused([&](MopdSettings& s) { s.teachers[0].id = id; })) << id;
  }
  EXPECT_TRUE(refused([](MopdSettings& s) { s.teachers[0].path.clear(); }));
  EXPECT_TRUE(refused([](MopdSettings& s) { s.teachers.clear(); }));
  EXPECT_TRUE(refused([](MopdSettings& s) { s.routes.clear(); }));
  EXPECT_TRUE(refused([](MopdSettings& s) { s.routes[1].name = "single"; }));
  EXPECT_TRUE(refused([](MopdSettings& s) { s.routes[0].weights[0].teacher = "nobody"; }));
  EXPECT_TRUE(refused([](MopdSettings& s) { s.routes[0].weights.clear(); }));
  for (const double weight : {-1.0, kNan, kInf, 0.0}) {
    EXPECT_TRUE(refused([&](MopdSettings& s) { s.routes[0].weights[0].weight = weight; })) << weight;
  }
  for (const double coefficient : {-1.0, kNan, kInf, 0.0}) {
    EXPECT_TRUE(refused([&](MopdSettings& s) { s.coefficients = {0, coefficient}; })) << coefficient;
  }
  for (const double cap : {-1.0, kNan, kInf, 0.0}) {
    EXPECT_TRUE(refused([&](MopdSettings& s) { s.importance_ratio_cap = cap; })) << cap;
  }
}

TEST(Mixture, UniformGivesEverySourceTheSameShare) {
  const std::vector<std::uint64_t> sizes = {2, 5, 3};
  const Mixture mixture = Mixture::create(MixturePolicy::kUniform, sizes).value();
  ASSERT_EQ(mixture.length(), 15U);
  std::vector<std::vector<int>> taken = {std::vector<int>(2), std::vector<int>(5), std::vector<int>(3)};
  for (std::uint64_t at = 0; at < mixture.length(); ++at) {
    const MixtureRow row = mixture.at(at);
    ++taken[row.source][row.row];
  }
  EXPECT_EQ(taken[0], (std::vector<int>{3, 2}));
  EXPECT_EQ(taken[1], std::vector<int>(5, 1));
  EXPECT_EQ(taken[2], (std::vector<int>{2, 2, 1}));
}

TEST(Mixture, ProportionalTakesEachRowOnceAndEmptySourcesGiveNothing) {
  const std::vector<std::uint64_t> sizes = {0, 2, 0, 1};
  const Mixture mixture = Mixture::create(MixturePolicy::kProportional, sizes).value();
  ASSERT_EQ(mixture.length(), 3U);
  EXPECT_EQ(mixture.at(0), (MixtureRow{1, 0}));
  EXPECT_EQ(mixture.at(2), (MixtureRow{3, 0}));
  EXPECT_FALSE(Mixture::create(MixturePolicy::kUniform, sizes)) << "nothing to repeat";
  EXPECT_EQ(Mixture::create(MixturePolicy::kUniform, {}).value().length(), 0U);
  const std::vector<std::uint64_t> huge = {std::numeric_limits<std::uint64_t>::max(), 1};
  EXPECT_FALSE(Mixture::create(MixturePolicy::kProportional, huge)) << "the ends of sources would wrap around";
  EXPECT_FALSE(Mixture::create(MixturePolicy::kUniform, huge));
}

TEST(MopdPlan, NothingOfAnObjectiveThatDoesNotCountIsTouched) {
  const MopdPlanInputs everything{.coefficients = {1, 0},
                                  .reference_and_kl = true,
                                  .critic = true,
                                  .m2_filter = true,
                                  .rejection = true,
                                  .proximal = {.decoupled_loss = true}};
  EXPECT_FALSE(mopd_plan(everything).value().teacher_scoring) << "an unreadable teacher cannot stop plain RL";
  MopdPlanInputs distilled = everything;
  distilled.coefficients = {0, 1};
  EXPECT_EQ(
      mopd_plan(distilled).value(),
      (MopdPlan{.teacher_scoring = true, .rl = false, .reference = false, .critic = false, .proximal_logp = true}));
  distilled.m2_filter = distilled.rejection = false;
  EXPECT_FALSE(mopd_plan(distilled).value().proximal_logp);
  distilled.coefficients = {0, 0};
  EXPECT_FALSE(mopd_plan(distilled));
  distilled.coefficients = {-1, 1};
  EXPECT_FALSE(mopd_plan(distilled));
}

TEST(ScoringItems, FillAPipelineOfWholeMicroBatches) {
  EXPECT_EQ(scoring_items_min(1, 1, 1), 1U);
  EXPECT_EQ(scoring_items_min(1, 3, 2), 6U);
  EXPECT_EQ(scoring_items_min(4, 1, 1), 8U);
  EXPECT_EQ(scoring_items_min(4, 9, 2), 24U);
}

std::vector<TeacherActKind> kinds(const std::vector<TeacherAct>& acts) {
  std::vector<TeacherActKind> made;
  for (const TeacherAct& act : acts) made.push_back(act.kind);
  return made;
}

TEST(TeacherResidency, AnotherTeacherComesBackOnDeviceBeforeItsWeightsDo) {
  TeacherResidency residency;
  EXPECT_EQ(kinds(residency.load("t0").value()), (std::vector{TeacherActKind::kCreate}));
  EXPECT_EQ(kinds(residency.release(true).value()), (std::vector{TeacherActKind::kOffload}));
  EXPECT_EQ(kinds(residency.load("t1").value()), (std::vector{TeacherActKind::kOnload, TeacherActKind::kLoadWeights}));
  EXPECT_TRUE(residency.load("t1").value().empty());
  EXPECT_EQ(residency.teacher(), "t1");
}

TEST(TeacherResidency, AFailureDestroysTheEngineOnceAndForGood) {
  TeacherResidency residency;
  ASSERT_TRUE(residency.load("t0"));
  EXPECT_EQ(kinds(residency.fail()), (std::vector{TeacherActKind::kDestroy}));
  EXPECT_EQ(residency.state(), TeacherState::kBroken);
  EXPECT_TRUE(residency.fail().empty());
  EXPECT_FALSE(residency.load("t0"));
  EXPECT_FALSE(residency.release(true));
  EXPECT_TRUE(residency.close().empty());
  EXPECT_EQ(residency.state(), TeacherState::kClosed);
  EXPECT_TRUE(residency.fail().empty());
  EXPECT_EQ(residency.state(), TeacherState::kClosed);
}

TEST(TeacherResidency, AnIncompleteDrainChangesNothing) {
  TeacherResidency residency;
  ASSERT_TRUE(residency.load("t0"));
  EXPECT_FALSE(residency.release(false));
  EXPECT_EQ(residency.state(), TeacherState::kResident);
  EXPECT_TRUE(TeacherResidency().release(true).value().empty());
}

TEST(Drain, EveryConsumerSaysThatItDroppedEveryShard) {
  const std::vector<std::string> roles = {"actor", "t0"};
  const std::vector<DrainReceipt> complete = {{"t0", 3}, {"actor", 3}};
  EXPECT_TRUE(check_drained(roles, 3, complete));
  EXPECT_FALSE(check_drained(roles, 4, complete));
  EXPECT_FALSE(check_drained(roles, 3, std::span(complete).first(1)));
  EXPECT_FALSE(check_drained(roles, 3, std::vector<DrainReceipt>{complete[0], complete[1], complete[0]}));
}

}  // namespace
}  // namespace areal::algo
