// Fused tensors: which rows become which checkpoint tensor.
#include "engine/proto/layout_convert.h"

#include <gtest/gtest.h>

namespace areal::proto {
namespace {

// 8 query heads, 2 key-value heads of width 4, hidden 16, expert width 8, 4 experts.
constexpr FusedConfig kConfig{.heads = 8, .kv_heads = 2, .routed_experts = 4, .ep_rank = 0};

TEST(LayoutConvert, FusedProjectionSplitsIntoQueryKeyValue) {
  const Result<Views> views =
      unfuse_engine_tensor("model.layers.0.self_attn.qkv_proj.weight", Shape::of(48, 16), kConfig);
  ASSERT_TRUE(views);
  ASSERT_EQ(views->size(), 3U);
  EXPECT_EQ((*views)[0].shape, Shape::of(32, 16));
  EXPECT_EQ((*views)[1].shape, Shape::of(8, 16));
  EXPECT_EQ((*views)[2].offset, 40U * 16);
  std::uint64_t next = 0;  // Together they are the source, in order.
  for (const TensorView& view : *views) view.each([&next](std::uint64_t index) { EXPECT_EQ(index, next++); });
  EXPECT_EQ(next, 48U * 16);
}

// Without the check the last rows would silently belong to nobody.
TEST(LayoutConvert, RowsThatDoNotDivideAreRefused) {
  const Result<Views> odd =
      unfuse_engine_tensor("model.layers.0.self_attn.qkv_proj.weight", Shape::of(49, 16), kConfig);
  ASSERT_FALSE(odd);
  EXPECT_NE(odd.error().detail.find("not divisible"), std::string::npos);
  EXPECT_FALSE(unfuse_engine_tensor("model.layers.0.mlp.gate_up_proj.weight", Shape::of(5, 16), kConfig));
}

TEST(LayoutConvert, ExpertsAreNumberedGlobally) {
  FusedConfig second = kConfig;
  second.ep_rank = 1;
  const Result<Views> views =
      unfuse_engine_tensor("model.layers.0.mlp.experts.w13_weight", Shape::of(2, 16, 16), second);
  ASSERT_TRUE(views);
  ASSERT_EQ(views->size(), 4U);
  EXPECT_EQ((*views)[0].name, "model.layers.0.mlp.experts.2.gate_proj.weight");
  EXPECT_EQ((*views)[3].name, "model.layers.0.mlp.experts.3.up_proj.weight");
  EXPECT_EQ((*views)[3].offset, (16U + 8) * 16);
  EXPECT_EQ((*views)[3].shape, Shape::of(8, 16));
}

TEST(LayoutConvert, MegatronInterleavesByQueryGroup) {
  const MegatronConfig config{.heads = 4, .query_groups = 2, .hidden = 8};
  const Result<Views> views = megatron_to_checkpoint("module.module.decoder.layers.7.self_attention.linear_qkv.bias",
                                                     Shape::of(16), config, true);
  ASSERT_TRUE(views);
  std::vector<std::uint64_t> key;
  (*views)[1].each([&key](std::uint64_t index) { key.push_back(index); });
  EXPECT_EQ((*views)[1].name, "model.layers.7.self_attn.k_proj.bias");
  EXPECT_EQ(key, (std::vector<std::uint64_t>{4, 5, 12, 13}));
}

TEST(LayoutConvert, UnknownMegatronNamesAreRefused) {
  const MegatronConfig config{.heads = 4, .query_groups = 2, .hidden = 8};
  for (const char* name : {"module.module.decoder.layers.x.mlp.router.weight", "module.module.decoder.layers.3",
                           "other", "module.module.decoder.layers.3.mlp.experts.linear_fc1"}) {
    EXPECT_FALSE(megatron_to_checkpoint(name, Shape::of(4, 2), config, true)) << name;
  }
  EXPECT_FALSE(
      megatron_to_checkpoint("module.module.decoder.layers.3.mlp.router.weight", Shape::of(4, 2), config, false));
}

}  // namespace
}  // namespace areal::proto
