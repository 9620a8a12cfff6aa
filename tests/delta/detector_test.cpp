// Whether one optimizer step explains what happened to a parameter: both decision tables, and whole passes over ranks.
#include "engine/delta/detector.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/base/state.h"

namespace areal::delta {
namespace {

constexpr std::uint64_t kNumel = 8;

Fingerprint print_of(std::uint8_t content) {
  const std::vector<std::uint8_t> bytes(16, content);
  return fingerprint_of(bytes, DType::kBf16);
}

// A parameter after `step` steps; its bytes say which step it is.
ParameterState state_at(std::uint64_t step, std::uint64_t owned = kNumel) {
  const auto content = static_cast<std::uint8_t>(step);
  return {.has_entry = true,
          .step = step,
          .shard = print_of(content),
          .model = print_of(content),
          .has_moments = true,
          .has_recorded_lr = true,
          .owned = owned};
}

ParameterState without_entry(std::uint8_t content) { return {.step = {}, .model = print_of(content)}; }

Watermark synced(const ParameterState& state) { return watermark_of(state, print_of(1)); }

// ---- The first table ----

TEST(Classify, FirstMatchWins) {
  const Watermark at_four = synced(state_at(4));
  const auto expect = [](const Watermark& watermark, const ParameterState& state, Contribution contribution,
                         bool expected_one_step) {
    const Classified got = classify(watermark, state);
    EXPECT_EQ(to_text(got.contribution), to_text(contribution));
    EXPECT_EQ(got.expected_one_step, expected_one_step);
  };
  expect(at_four, without_entry(9), Contribution::kNothing, false);
  ParameterState state = state_at(5);
  state.step.reset();
  expect(at_four, state, Contribution::kBadState, false);
  state.step = 0;
  expect(at_four, state, Contribution::kBadState, false);
  expect({}, state, Contribution::kBadState, false);
  expect({}, state_at(5), Contribution::kForce, false);
  state = state_at(4);
  expect(at_four, state, Contribution::kUnchanged, false);
  state.shard = print_of(99);
  expect(at_four, state, Contribution::kForce, false);
  expect(at_four, state_at(6), Contribution::kForce, false);
  expect(at_four, state_at(3), Contribution::kForce, false);
  expect(at_four, state_at(1), Contribution::kForce, false);
  Watermark no_shard = at_four;
  no_shard.shard.reset();
  expect(no_shard, state_at(4), Contribution::kForce, false);
  expect(no_shard, state_at(5), Contribution::kForce, false);
  state = state_at(5);
  state.has_moments = false;
  state.has_recorded_lr = false;
  expect(at_four, state, Contribution::kBadState, true);
  state.has_moments = true;
  expect(at_four, state, Contribution::kForce, true);
  expect(at_four, state_at(5), Contribution::kContributes, true);
}

// An optimizer that had made no step when the model was synced has no counter yet.
TEST(Classify, NoRecordedStepCountsAsZero) {
  ParameterState fresh = state_at(1);
  fresh.step.reset();
  const Watermark watermark = synced(fresh);
  ASSERT_TRUE(watermark.known);
  EXPECT_EQ(classify(watermark, state_at(1)).contribution, Contribution::kContributes);
  EXPECT_EQ(classify(watermark, state_at(2)).contribution, Contribution::kForce);
}

// ---- The second table ----

TEST(Resolve, FirstMatchWins) {
  const Watermark at_four = synced(state_at(4));
  const ParameterState now = state_at(5);
  const ParameterState outside = without_entry(4);
  const Watermark outside_mark = synced(outside);
  const Classified contributes{Contribution::kContributes, true};
  const Classified nothing{Contribution::kNothing};
  const auto expect = [](Resolution wanted, Resolution got) { EXPECT_EQ(to_text(got), to_text(wanted)); };
  expect(Resolution::kForce, resolve({1, 1, kNumel}, at_four, now, contributes, kNumel));
  expect(Resolution::kForce, resolve({0, 0, 0}, outside_mark, without_entry(5), nothing, kNumel));
  expect(Resolution::kNoOverride, resolve({0, 0, 0}, outside_mark, outside, nothing, kNumel));
  expect(Resolution::kNoOverride, resolve({0, 0, 0}, {}, outside, nothing, kNumel));
  expect(Resolution::kForce, resolve({0, 0, 0}, at_four, now, {Contribution::kBadState, true}, kNumel));
  expect(Resolution::kNoOverride, resolve({0, 0, 0}, at_four, state_at(4), {Contribution::kUnchanged}, kNumel));
  expect(Resolution::kForce, resolve({1, 0, kNumel - 1}, at_four, now, contributes, kNumel));
  expect(Resolution::kForce, resolve({1, 0, kNumel + 1}, at_four, now, contributes, kNumel));
  expect(Resolution::kOverride, resolve({2, 0, kNumel}, at_four, now, contributes, kNumel));
  // Who owns nothing takes the others' correction.
  expect(Resolution::kOverride, resolve({2, 0, kNumel}, outside_mark, without_entry(5), nothing, kNumel));
}

// No counter and no moments force nothing, but what changed without them must not stay behind. Its own payload would
// show it only if no other part of the payload stepped.
TEST(Resolve, BadStateThatChangedForcesFull) {
  ParameterState before = state_at(4);
  before.step.reset();
  before.has_moments = false;
  const Watermark watermark = synced(before);
  const auto resolved = [&watermark](const ParameterState& now) {
    const Classified local = classify(watermark, now);
    EXPECT_EQ(local.contribution, Contribution::kBadState);
    return resolve(status_of(local, now, false), watermark, now, local, kNumel);
  };
  EXPECT_EQ(resolved(before), Resolution::kNoOverride);
  ParameterState other_shard = before;
  other_shard.shard = print_of(99);
  EXPECT_EQ(resolved(other_shard), Resolution::kForce);
  ParameterState other_model = before;
  other_model.model = print_of(99);
  EXPECT_EQ(resolved(other_model), Resolution::kForce);
}

TEST(JudgeEmptyMask, OnlyTheRecordedPayloadIsKept) {
  const Watermark watermark = watermark_of(state_at(4), print_of(7));
  EXPECT_EQ(judge_empty_mask(watermark, print_of(7)), PayloadVerdict::kKeep);
  EXPECT_EQ(judge_empty_mask(watermark, print_of(8)), PayloadVerdict::kDense);
  EXPECT_EQ(judge_empty_mask(watermark_of(state_at(4), std::nullopt), print_of(7)), PayloadVerdict::kDense);
  EXPECT_EQ(judge_empty_mask({}, print_of(7)), PayloadVerdict::kDense);
}

// ---- Whole passes ----

// The members of one group, each with what it recorded and what it has now, one parameter after another.
struct Member {
  std::vector<Watermark> watermarks;
  std::vector<ParameterState> states;
};

Member member_of(const std::vector<ParameterState>& before, const std::vector<ParameterState>& now) {
  Member member{.watermarks = {}, .states = now};
  for (const ParameterState& state : before) member.watermarks.push_back(synced(state));
  return member;
}

struct Pass {
  std::vector<bool> forced;  // By member.
  std::size_t overrides = 0;
  std::size_t reductions = 0;
};

// Every member goes through all parameters, whatever it has seen.
Pass pass_over(const std::vector<Member>& members) {
  Pass pass{.forced = std::vector<bool>(members.size())};
  for (std::size_t parameter = 0; parameter < members[0].states.size(); ++parameter) {
    ReducedStatus sums;
    std::vector<Classified> locals;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const ParameterState& state = members[i].states[parameter];
      locals.push_back(classify(members[i].watermarks[parameter], state));
      const ReducedStatus own = status_of(locals[i], state, pass.forced[i]);
      sums.contributed += own.contributed, sums.force += own.force, sums.owned += own.owned;
    }
    ++pass.reductions;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Member& member = members[i];
      const Resolution resolution =
          resolve(sums, member.watermarks[parameter], member.states[parameter], locals[i], kNumel);
      if (resolution == Resolution::kForce) pass.forced[i] = true;
      if (resolution == Resolution::kOverride) ++pass.overrides;
    }
  }
  return pass;
}

TEST(DetectorPass, OneStepEverywhereIsADelta) {
  const std::vector<ParameterState> before{state_at(4, 4), state_at(4, 4)};
  const std::vector<ParameterState> now{state_at(5, 4), state_at(5, 4)};
  const Pass pass = pass_over({member_of(before, now), member_of(before, now)});
  EXPECT_EQ(pass.forced, (std::vector{false, false}));
  EXPECT_EQ(pass.overrides, 4U);
}

TEST(DetectorPass, TwoStepsOfOneParameterOfOneRankMakeAllFull) {
  const std::vector<ParameterState> before{state_at(4, 4), state_at(4, 4), state_at(4, 4)};
  const std::vector<ParameterState> once{state_at(5, 4), state_at(5, 4), state_at(5, 4)};
  std::vector<ParameterState> twice = once;
  twice[1] = state_at(6, 4);
  const Pass pass = pass_over({member_of(before, once), member_of(before, twice)});
  EXPECT_EQ(pass.forced, (std::vector{true, true}));
  // Only what came before the jump was reconstructed, but the pass went on to its end.
  EXPECT_EQ(pass.overrides, 2U);
  EXPECT_EQ(pass.reductions, 3U);
}

TEST(DetectorPass, NoStepsAndNoChangesNeedNothing) {
  const std::vector<ParameterState> before{state_at(4, 4), state_at(4, 4)};
  const Pass pass = pass_over({member_of(before, before), member_of(before, before)});
  EXPECT_EQ(pass.forced, (std::vector{false, false}));
  EXPECT_EQ(pass.overrides, 0U);
  EXPECT_EQ(judge_empty_mask(synced(before[0]), print_of(1)), PayloadVerdict::kKeep);
}

// An edit of the published copy leaves the optimizer's own weights as they were.
TEST(DetectorPass, NoStepsButAnEditedElementIsFull) {
  const std::vector<ParameterState> before{state_at(4)};
  std::vector<ParameterState> edited = before;
  edited[0].model = print_of(5);
  EXPECT_EQ(classify(synced(before[0]), edited[0]).contribution, Contribution::kUnchanged);
  EXPECT_EQ(pass_over({member_of(before, edited)}).forced, std::vector{true});
  EXPECT_EQ(judge_empty_mask(synced(before[0]), print_of(5)), PayloadVerdict::kDense);
}

TEST(DetectorPass, SlicesThatLeaveAnElementOutAreFull) {
  const auto pass_with = [](std::uint64_t second) {
    return pass_over(
        {member_of({state_at(4, 4)}, {state_at(5, 4)}), member_of({state_at(4, second)}, {state_at(5, second)})});
  };
  EXPECT_EQ(pass_with(3).forced, (std::vector{true, true}));
  EXPECT_EQ(pass_with(4).forced, (std::vector{false, false}));
}

// A first step whose rate nobody wrote down: nothing may be inverted with another rate.
TEST(DetectorPass, StepWithoutItsRateIsFull) {
  ParameterState before = state_at(1);
  before.step.reset();
  before.shard = print_of(0);
  ParameterState now = state_at(1);
  now.has_recorded_lr = false;
  const Pass pass = pass_over({member_of({before}, {now})});
  EXPECT_EQ(pass.forced, std::vector{true});
  EXPECT_EQ(pass.overrides, 0U);
  now.has_recorded_lr = true;
  EXPECT_EQ(pass_over({member_of({before}, {now})}).overrides, 1U);
}

// ---- The state ----

TEST(Detector, KnowsWhatWasSyncedUntilItForgets) {
  Detector detector;
  EXPECT_FALSE(detector.has_watermark());
  EXPECT_FALSE(detector.watermark(0).known);
  detector.mark_synced({synced(state_at(4)), synced(without_entry(3))});
  EXPECT_TRUE(detector.has_watermark());
  EXPECT_EQ(detector.watermark(0).step, 4U);
  EXPECT_FALSE(detector.watermark(1).shard.has_value());
  EXPECT_EQ(detector.watermark(1).model, print_of(3));
  EXPECT_FALSE(detector.watermark(2).known);
  const Detector before = detector;
  detector.mark_synced({synced(state_at(5)), synced(without_entry(3))});
  EXPECT_EQ(detector.watermark(0).step, 5U);
  EXPECT_EQ(before.watermark(0).step, 4U);
  detector.forget();
  EXPECT_FALSE(detector.has_watermark());
}

TEST(Detector, SurvivesBeingSaved) {
  Detector detector;
  detector.mark_synced({synced(state_at(4)), synced(without_entry(3)), {}});
  StateWriter writer;
  writer.value(detector);
  Detector restored;
  StateReader reader(writer.words());
  reader.value(restored);
  EXPECT_TRUE(reader.ok() && reader.at_end());
  EXPECT_EQ(restored.watermark(0).shard, print_of(4));
  EXPECT_FALSE(restored.watermark(2).known);
  EXPECT_EQ(state_digest(restored), state_digest(detector));
}

}  // namespace
}  // namespace areal::delta
