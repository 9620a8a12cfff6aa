// Sizes of the known models, and what a live model keeps of them.
#include "engine/config/model.h"

#include <gtest/gtest.h>

#include "engine/proto/sharding.h"

namespace areal::config {
namespace {

const ParallelStrategy kTrain{.dp = 2, .tp = 4, .ep = 8};
const ParallelStrategy kInfer{.dp = 2, .tp = 4};

ModelSpec model(const char* name) { return model_by_name(name).value(); }

TEST(Model, ThirtyBillionParametersHave18867Tensors) {
  const ModelSpec big = model("qwen3-30b-a3b");
  EXPECT_EQ(big.parameters.size(), 18'867U);
  EXPECT_EQ(big.elements(), 30'532'122'624U);
  EXPECT_EQ(big.storage_bytes(), 61'064'245'248U);
  const Parameter* down = big.find("model.layers.47.mlp.experts.127.down_proj.weight");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->shape, Shape::of(2048, 768));
  EXPECT_EQ(down->expert, 127U);
  EXPECT_EQ(big.find("model.layers.48.input_layernorm.weight"), nullptr);
}

TEST(Model, RouterMayBeKeptInFp32) {
  ModelDims dims = qwen3_30b_a3b_dims();
  dims.router_storage = DType::kF32;
  dims.router_wire = DType::kF32;
  const ModelSpec big = qwen3_moe_model(dims).value();
  EXPECT_EQ(big.find("model.layers.3.mlp.gate.weight")->wire, DType::kF32);
  EXPECT_EQ(big.wire_bytes(), 61'064'245'248U + 48U * 128 * 2048 * 2);
}

TEST(Model, TiedHeadIsAnAliasAndNoParameter) {
  const ModelSpec small = model("qwen3-0.6b");
  EXPECT_EQ(small.parameters.size(), 310U);
  EXPECT_EQ(small.find("lm_head.weight"), nullptr);
  ASSERT_EQ(small.aliases.size(), 1U);
  EXPECT_EQ((*small.names)[small.aliases[0].name], "lm_head.weight");
  EXPECT_EQ((*small.names)[small.aliases[0].source], "model.embed_tokens.weight");
}

TEST(Model, ParametersAreSortedByNameAndOrderIsThatOfAForwardPass) {
  const ModelSpec tiny = model("tiny");
  for (std::size_t i = 1; i < tiny.parameters.size(); ++i) {
    EXPECT_LT(tiny.name_of(tiny.parameters[i - 1]), tiny.name_of(tiny.parameters[i]));
  }
  ASSERT_EQ(tiny.order.size(), tiny.parameters.size());
  EXPECT_EQ(tiny.name_of(tiny.parameters[tiny.order.front()]), "model.embed_tokens.weight");
  EXPECT_EQ(tiny.name_of(tiny.parameters[tiny.order.back()]), "lm_head.weight");
}

// If the two disagreed, a plan made from names would cut tensors otherwise than the model says.
TEST(Model, ClassOfEveryParameterIsTheOneItsNameSays) {
  for (const char* name : {"qwen3-30b-a3b", "qwen3-0.6b", "tiny"}) {
    const ModelSpec spec = model(name);
    for (const Parameter& parameter : spec.parameters) {
      EXPECT_EQ(proto::shard_class_of_name(spec.name_of(parameter)), parameter.shard) << spec.name_of(parameter);
      if (parameter.shard == ShardClass::kReplicated || parameter.shard == ShardClass::kRouter) continue;
      EXPECT_EQ(proto::default_cut_dimension(spec.name_of(parameter)), cut_dimension(parameter.shard));
    }
  }
}

TEST(Model, LiveTensorsKeepRankClassAndDivideByBothLayouts) {
  const ModelSpec big = model("qwen3-30b-a3b");
  const ModelSpec live = live_model(big, kTrain, kInfer).value();
  EXPECT_EQ(live.parameters.size(), 3U + 3 * (9 + 16 * 3));  // 8 owners with two experts each.
  for (const Parameter& parameter : live.parameters) {
    const Parameter* full = big.find(parameter.name);
    ASSERT_NE(full, nullptr);
    EXPECT_EQ(parameter.shape.rank, full->shape.rank);
    EXPECT_EQ(parameter.shard, full->shard);
    EXPECT_GE(parameter.shape.elements(), 64U);
    EXPECT_LE(parameter.shape.elements(), 128U);
    const std::uint32_t extent = parameter.shape.extent[cut_dimension(parameter.shard)];
    EXPECT_EQ(extent % training_shards(parameter, kTrain), 0U);
    EXPECT_EQ(extent % inference_shards(parameter, kInfer), 0U);
  }
  EXPECT_NE(live.find("model.layers.47.mlp.experts.113.up_proj.weight"), nullptr);
  EXPECT_EQ(live.find("model.layers.47.mlp.experts.114.up_proj.weight"), nullptr);
  EXPECT_EQ(live.find("model.layers.2.input_layernorm.weight"), nullptr);
}

TEST(Model, LiveAllKeepsEveryName) {
  const ModelSpec big = model("qwen3-30b-a3b");
  const ModelSpec live = live_model(big, kTrain, kInfer, {.all_names = true}).value();
  EXPECT_EQ(live.parameters.size(), big.parameters.size());
  EXPECT_EQ(live.order, big.order);
}

TEST(Model, ShardCountsThatDoNotFitAreRefused) {
  EXPECT_FALSE(live_model(model("tiny"), {.tp = 512}, kInfer));
  EXPECT_FALSE(qwen3_moe_model(ModelDims{}));
  EXPECT_FALSE(model_by_name("qwen4"));
}

}  // namespace
}  // namespace areal::config
