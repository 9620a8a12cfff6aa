// Backend strings: what is read, and how a mistake is explained.
#include "engine/config/layout.h"

#include <gtest/gtest.h>

namespace areal::config {
namespace {

TEST(Layout, ReadsTheExampleOfTheDeltaRun) {
  const Result<ModelAllocation> rollout = parse_allocation("sglang:d2t4p1");
  ASSERT_TRUE(rollout);
  EXPECT_EQ(rollout->parallel, (ParallelStrategy{.dp = 2, .tp = 4}));
  const Result<ModelAllocation> actor = parse_allocation("megatron:(attn:d2p1t4|ffn:d1p1e8)");
  ASSERT_TRUE(actor);
  EXPECT_EQ(actor->parallel, (ParallelStrategy{.dp = 2, .tp = 4, .ep = 8}));
  EXPECT_EQ(actor->world_size(), 8U);
}

TEST(Layout, AnUnknownDimensionIsNamedWithItsColumnAndTheKnownOnes) {
  const Result<ModelAllocation> wrong = parse_allocation("megatron:d2t4q1");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().detail, "'megatron:d2t4q1': unknown dimension 'q' at column 14; known: d t p c e");
  const Result<ModelAllocation> engine = parse_allocation("sglang:d2t4q1");
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().detail, "'sglang:d2t4q1': unknown dimension 'q' at column 12; known: d t p");
}

TEST(Layout, ATrainingDimensionDoesNotFitAnEngine) {
  const Result<ModelAllocation> wrong = parse_allocation("sglang:d2e4");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().detail, "'sglang:d2e4': dimension 'e' at column 10 does not fit sglang; known there: d t p");
}

// A cut-off string must be refused wherever it is cut, and never read past its end.
TEST(Layout, EveryPrefixIsReadOrRefused) {
  const std::string whole = "sglang[r]:d2t4+megatron[a]:(attn:d2p1t4|ffn:d1p1e8)";
  std::size_t accepted = 0;
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    const Result<AllocationMode> mode = parse_allocation_mode(whole.substr(0, length));
    if (mode)
      ++accepted;
    else
      EXPECT_FALSE(mode.error().detail.empty());
  }
  EXPECT_EQ(accepted, 3U);  // d2, d2t4 and the whole.
}

TEST(Layout, SizesThatOverflowAreRefused) {
  EXPECT_FALSE(parse_allocation("sglang:d99999999999"));
  EXPECT_FALSE(parse_allocation("sglang:d65535t65535"));
}

TEST(Layout, TextOfAnAllocationReadsBackAsTheSame) {
  for (const char* text : {"sglang:d2t4", "megatron:d4p2t2", "fsdp:d2t2c4", "megatron:d2t4e8", "vllm:d1"}) {
    const Result<ModelAllocation> allocation = parse_allocation(text);
    ASSERT_TRUE(allocation) << text;
    EXPECT_EQ(to_text(*allocation), text);
  }
}

}  // namespace
}  // namespace areal::config
