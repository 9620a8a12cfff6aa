// Change bits: packing, refusals, and those of a step that is known exactly.
#include "engine/delta/bitset.h"

#include <gtest/gtest.h>

#include <limits>

#include "engine/base/rng.h"
#include "engine/delta/adamw.h"
#include "engine/delta/bf16.h"

namespace areal::delta {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Positions = std::vector<std::int64_t>;

Bytes mask_of(std::size_t elements, const Positions& set) {
  Bytes mask(elements, 0);
  for (const std::int64_t i : set) mask[static_cast<std::size_t>(i)] = 1;
  return mask;
}

TEST(Bitset, ElementIsALittleEndianBit) {
  EXPECT_EQ(pack_mask(mask_of(8, {0, 2, 7})), (Bytes{133}));
  EXPECT_EQ(pack_mask(mask_of(9, {8})), (Bytes{0, 1}));
  EXPECT_EQ(*unpack_mask(Bytes{0, 1}, 9), mask_of(9, {8}));
  EXPECT_EQ(pack_mask({}), Bytes{});
  EXPECT_EQ(*unpack_mask({}, 0), Bytes{});
  EXPECT_EQ(pack_mask(Bytes{0, 255, 2}), (Bytes{6}));
  EXPECT_EQ(*set_bits(pack_mask(mask_of(19, {0, 2, 7, 8, 18})), 19), (Positions{0, 2, 7, 8, 18}));
}

TEST(Bitset, PaddingIsNotRead) { EXPECT_EQ(*set_bits(Bytes{0xFF}, 3), (Positions{0, 1, 2})); }

TEST(Bitset, WrongLengthsAreRefused) {
  EXPECT_FALSE(unpack_mask(Bytes{1}, 9));
  EXPECT_FALSE(set_bits(Bytes{1}, -1));
  EXPECT_FALSE(set_bits({}, std::numeric_limits<std::int64_t>::max()));
  EXPECT_TRUE(set_bits(Bytes{1, 2, 3}, 9));  // More bytes than needed.
}

// Bytes are independent: reading two at a time gives what reading all gives.
TEST(Bitset, PartsOfABitsetAreBitsets) {
  Rng rng(257);
  Bytes mask(257, 0);
  for (std::uint8_t& bit : mask) bit = rng.draw_chance(1, 3) ? 1 : 0;
  const Bytes packed = pack_mask(mask);
  Positions in_parts;
  for (std::size_t byte = 0; byte < packed.size(); byte += 2) {
    const std::size_t first = byte * 8;
    const auto part = set_bits(std::span(packed).subspan(byte, std::min<std::size_t>(2, packed.size() - byte)),
                               static_cast<std::int64_t>(std::min<std::size_t>(16, mask.size() - first)));
    ASSERT_TRUE(part);
    for (const std::int64_t i : *part) in_parts.push_back(i + static_cast<std::int64_t>(first));
  }
  EXPECT_EQ(in_parts, *set_bits(packed, 257));
  EXPECT_EQ(*unpack_mask(packed, 257), mask);
}

struct Step {
  std::vector<float> before;
  std::vector<float> after;
};

Step stepped(double learning_rate) {
  Rng rng(42);
  Step step;
  std::vector<float> gradients;
  for (int i = 0; i < 32; ++i) {
    step.before.push_back(static_cast<float>(rng.draw_below(1U << 16)) * 0x1p-16F + 0.5F);
    gradients.push_back(rng.draw_chance(1, 2) ? 1.0F : -1.0F);
  }
  step.after = step.before;
  std::vector<float> exp_avg(32, 0.0F);
  std::vector<float> exp_avg_sq(32, 0.0F);
  adamw_step(adamw_scalars({.learning_rate = learning_rate}, 1), {step.after, exp_avg, exp_avg_sq, gradients});
  return step;
}

TEST(OracleBitset, IsWhatRoundingChanges) {
  const Step step = stepped(1e-3);
  Positions wanted;
  for (std::size_t i = 0; i < 32; ++i) {
    if (to_bf16(step.before[i]) != to_bf16(step.after[i])) wanted.push_back(static_cast<std::int64_t>(i));
  }
  ASSERT_FALSE(wanted.empty());
  ASSERT_LT(wanted.size(), 32U);
  const auto bits = oracle_bitset(step.before, step.after, {true, 1});
  ASSERT_TRUE(bits);
  EXPECT_EQ(*set_bits(*bits, 32), wanted);
}

TEST(OracleBitset, StepsBelowTheResolutionChangeNothing) {
  std::vector<float> before(32, 1.0F);
  std::vector<float> after(32, 1.0F - 1e-6F);
  EXPECT_EQ(*oracle_bitset(before, after, {true, 1}), Bytes(4, 0));
}

TEST(OracleBitset, SkippedStepsChangeNothingAndStepZeroIsRefused) {
  const std::vector<float> before(9, 1.0F);
  const std::vector<float> broken(9, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(*oracle_bitset(before, broken, {false, 0}), Bytes(2, 0));
  const auto refused = oracle_bitset(before, before, {true, 0});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().detail.find("step must be positive"), std::string::npos);
  EXPECT_FALSE(oracle_bitset(before, std::span(broken).first(8), {true, 1}));
}

}  // namespace
}  // namespace areal::delta
