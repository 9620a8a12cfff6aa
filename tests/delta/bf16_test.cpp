// Rounding to bf16: ties, overflow, NaN, and every bf16 value back and forth.
#include "engine/delta/bf16.h"

#include <gtest/gtest.h>

#include <limits>

namespace areal::delta {
namespace {

TEST(Bf16, EveryFiniteValueSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto bf16 = static_cast<std::uint16_t>(bits);
    const bool is_nan = (bf16 & 0x7FFF) > 0x7F80;
    EXPECT_EQ(bf16_from_bits(bits_from_bf16(bf16)), is_nan ? kCanonicalNan : bf16);
  }
}

TEST(Bf16, TiesGoToTheEvenNeighbour) {
  EXPECT_EQ(bf16_from_bits(0x3F808000), 0x3F80);  // Half way, even below.
  EXPECT_EQ(bf16_from_bits(0x3F818000), 0x3F82);  // Half way, even above.
  EXPECT_EQ(bf16_from_bits(0x3F808001), 0x3F81);
  EXPECT_EQ(bf16_from_bits(0x3F817FFF), 0x3F81);
  EXPECT_EQ(bf16_from_bits(0xBF818000), 0xBF82);
}

TEST(Bf16, BeyondTheLargestIsInfinityAndNanIsCanonical) {
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(bf16_from_bits(0x7F7F7FFF), 0x7F7F);
  EXPECT_EQ(bf16_from_bits(0x7F800001), kCanonicalNan);  // Cutting this off would give infinity.
  EXPECT_EQ(bf16_from_bits(0xFFFFFFFF), kCanonicalNan);  // Rounding this would give zero.
  EXPECT_EQ(bf16_from_bits(0x80000001), 0x8000);
}

}  // namespace
}  // namespace areal::delta
