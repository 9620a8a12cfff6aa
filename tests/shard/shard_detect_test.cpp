// Shard-local detection by example: tied names across stages, what crosses the wire, refusals, places in views.
#include <gtest/gtest.h>

#include "engine/delta/shard/view_index.h"
#include "engine/proto/layout_convert.h"
#include "tests/shard/trained_world.h"

namespace areal::delta {
namespace {

config::ModelSpec small_model(bool is_tied, std::uint32_t vocabulary = 16) {
  config::ModelDims dims = config::tiny_dims();
  dims.layers = 2;
  dims.experts = 0;
  dims.tied_embedding = is_tied;
  dims.vocabulary = vocabulary;
  return config::qwen3_moe_model(dims).value();
}

TEST(ViewIndex, IsTheOrderOfEachAndItsInverse) {
  const proto::Shape shape = proto::Shape::of(24, 3);  // Two groups of 8 query, 2 key and 2 value rows.
  const proto::Views views =
      proto::megatron_to_checkpoint("module.module.decoder.layers.0.self_attention.linear_qkv.weight", shape,
                                    {.heads = 8, .query_groups = 2, .hidden = 3, .kv_channels = 2}, false)
          .value();
  std::vector<int> covered(shape.elements(), 0);
  for (const proto::TensorView& view : views) {
    std::uint64_t index = 0;
    view.each([&](std::uint64_t source) {
      EXPECT_EQ(source_index(view, index), source);
      EXPECT_EQ(view_index(view, source), index);
      ++index;
    });
    for (std::uint64_t source = 0; source < shape.elements(); ++source) {
      covered[source] += view_index(view, source).has_value() ? 1 : 0;
    }
    EXPECT_FALSE(view_index(view, shape.elements()).has_value());
  }
  EXPECT_EQ(covered, std::vector<int>(shape.elements(), 1));
}

// The head of a tied model lies on the last stage, its source on the first: without slices of its own it would keep
// the first version forever.
TEST(ShardDetect, TiedHeadOnAnotherStageGetsItsSourcesChanges) {
  auto world = TrainedWorld::make(small_model(true), {.dp = 2, .tp = 2}, nullptr, {.tp = 2, .pp = 2}).value();
  world.train({.learning_rate = 3e-4}, 5, 7);
  const auto received = world.by_shards(proven_rule(world.proven), world.slices());
  const auto index_of = [&](std::string_view name) {
    return static_cast<std::uint32_t>(std::ranges::find(world.infer.parameters, name,
                                                        [&](const proto::ParameterGrid& grid) -> std::string_view {
                                                          return (*world.infer.names)[grid.name];
                                                        }) -
                                      world.infer.parameters.begin());
  };
  const auto of_name = [&](std::uint32_t rank, std::string_view name) {
    std::vector<std::pair<std::int32_t, std::uint32_t>> updates;
    for (const auto& [place, bits] : received[rank]) {
      if (place.first == index_of(name)) updates.emplace_back(place.second, bits);
    }
    return updates;
  };
  for (const std::uint32_t tensor_rank : {0U, 1U}) {
    const auto source = of_name(tensor_rank, "model.embed_tokens.weight");
    EXPECT_FALSE(source.empty());
    EXPECT_EQ(of_name(2 + tensor_rank, "lm_head.weight"), source);
  }
  // On one stage they are one storage, and nothing is sent twice.
  auto one_stage = TrainedWorld::make(small_model(true), {.dp = 2}, nullptr, {.tp = 2}).value();
  for (const OwnerSlice& slice : one_stage.slices()) {
    EXPECT_NE((*one_stage.infer.names)[one_stage.infer.parameters[slice.target].name], "lm_head.weight");
  }
}

// A head that is trained by itself is sent its own elements, whatever the engines take it for.
TEST(ShardDetect, AHeadOfItsOwnIsNobodysAlias) {
  auto world = TrainedWorld::make(small_model(false), {.dp = 2}, nullptr, {.pp = 2}).value();
  const std::vector<OwnerSlice> slices = world.slices();
  const auto name_of = [&](std::string_view name) {
    return std::ranges::find(world.layout.model.parameters, name,
                             [&](const config::Parameter& parameter) -> std::string_view {
                               return world.layout.model.name_of(parameter);
                             })
        ->name;
  };
  world.layout.model.aliases = {{name_of("lm_head.weight"), name_of("model.embed_tokens.weight")}};
  EXPECT_EQ(world.slices().size(), slices.size());
}

struct Traffic {
  DeltaTraffic shards;
  DeltaTraffic reductions;
};

// Of the embedding of a model with so many words, when `changed` of its elements did change.
Traffic traffic_with(std::uint32_t vocabulary, std::uint64_t changed) {
  const auto world =
      TrainedWorld::make(small_model(false, vocabulary), {.dp = 4, .tp = 2}, nullptr, {.dp = 3, .tp = 2}).value();
  const auto core = static_cast<std::uint32_t>(
      std::ranges::find(world.layout.tensors, "module.module.embedding.word_embeddings.weight", &CoreTensor::name) -
      world.layout.tensors.begin());
  const CoreTensor& tensor = world.layout.tensors[core];
  std::vector<SparsePatch> patches;
  for (std::uint32_t piece = 0; piece < tensor.ranks.tensor_pieces; ++piece) {
    for (std::uint32_t owner = 0; owner < tensor.owners(); ++owner) {
      std::vector<OwnerSlice> mine;
      for (const OwnerSlice& slice : world.slices()) {
        if (slice.core == core && slice.piece == piece && slice.owner == owner) mine.push_back(slice);
      }
      const std::vector<float> weights(tensor.owned(owner).size(), 1.0F);
      const std::vector<std::uint32_t> visible(weights.size(), to_bf16(1.0F));
      std::vector<std::uint64_t> positions;
      const std::uint64_t share = changed / (std::uint64_t{tensor.ranks.tensor_pieces} * tensor.owners());
      positions.reserve(share);
      for (std::uint64_t i = 0; i < share; ++i) positions.push_back(i);
      auto made = route_changes(world.layout, mine, {weights, weights, weights, visible}, positions).value();
      std::ranges::move(made, std::back_inserter(patches));
    }
  }
  return {shard_traffic(patches), reduction_traffic(tensor, patches)};
}

TEST(ShardDetect, TrafficGrowsWithWhatChangedAndNotWithTheModel) {
  const Traffic some = traffic_with(64, 80);
  const Traffic twice = traffic_with(64, 160);
  const Traffic larger = traffic_with(256, 80);
  constexpr std::uint64_t kEngines = 3;
  EXPECT_EQ(some.shards.updates, 80 * kEngines);
  EXPECT_EQ(some.shards.data_bytes, 80 * kEngines * 6);  // int32 and bf16.
  EXPECT_EQ(twice.shards.data_bytes, 2 * some.shards.data_bytes);
  EXPECT_EQ(larger.shards.data_bytes, some.shards.data_bytes);
  EXPECT_EQ(larger.shards.count_bytes, some.shards.count_bytes);
  EXPECT_EQ(some.shards.reduced_bytes, 0U);
  // The reference's corrections are fp32 of the whole piece on every copy.
  EXPECT_EQ(some.reductions.reduced_bytes, 4U * 64 * 32 / 2);
  EXPECT_EQ(larger.reductions.reduced_bytes, 4 * some.reductions.reduced_bytes);
  EXPECT_EQ(some.shards.status_bytes, some.reductions.status_bytes);
}

TEST(ShardDetect, EachCoreTensorReducesThreeStatusWords) {
  const auto world = TrainedWorld::make(small_model(false), {.dp = 2}, nullptr, {.tp = 2}).value();
  bool has_several = false;  // linear_qkv: three tensors of the checkpoint.
  for (const CoreTensor& tensor : world.layout.tensors) {
    has_several = has_several || tensor.parts.size() > 1;
    EXPECT_EQ(reduction_traffic(tensor, {}).status_bytes, 24U) << tensor.name;
  }
  EXPECT_TRUE(has_several);
}

// What the first owner of the first core tensor sends, from each of its pieces.
std::vector<OwnerSlice> slices_of_first_owner(const TrainedWorld& world) {
  std::vector<OwnerSlice> slices = world.slices();
  const OwnerSlice first = slices.front();
  std::erase_if(slices,
                [&](const OwnerSlice& slice) { return slice.core != first.core || slice.owner != first.owner; });
  return slices;
}

TEST(ShardDetect, WhatDoesNotFitIsRefused) {
  const auto world = TrainedWorld::make(small_model(false), {.dp = 2}, nullptr, {.tp = 2}).value();
  std::vector<OwnerSlice> slices = slices_of_first_owner(world);
  const OwnerSlice first = slices.front();
  const std::uint64_t owned = world.layout.tensors[first.core].owned(first.owner).size();
  const std::vector<std::uint32_t> visible(owned, 0);
  const OwnedState state{{}, {}, {}, visible};
  const std::vector<std::uint64_t> outside{owned};
  EXPECT_TRUE(route_changes(world.layout, slices, state, {}).has_value());
  EXPECT_FALSE(route_changes(world.layout, slices, state, outside).has_value());
  EXPECT_FALSE(route_changes(world.layout, slices, {{}, {}, {}, std::span(visible).first(owned - 1)}, {}).has_value());
  EXPECT_FALSE(route_changes(world.layout, slices, {{}, {}, {}, visible, DType::kF16}, {}).has_value());
  slices.push_back(first);
  slices.back().owner = 1 - first.owner;
  EXPECT_FALSE(route_changes(world.layout, slices, state, {}).has_value());
  OwnerSlice nobodys = first;
  nobodys.owner = 2;
  EXPECT_FALSE(route_changes(world.layout, std::span(&nobodys, 1), state, {}).has_value());
  // More tensor ranks than query groups: pieces would share a group.
  EXPECT_EQ(megatron_core_layout(small_model(false), {.tp = 8}).error().code, Errc::kUnsupported);
}

// Rows that only the engine has would never be sent; so it is with aliases, and with other numbers of dimensions.
TEST(ShardDetect, TensorsOfAnotherSizeAreRefused) {
  const CoreLayout layout = megatron_core_layout(small_model(true), {.dp = 2}).value();
  const proto::GridSet fitting = proto::inference_grids(small_model(true), {.tp = 2, .pp = 2}).value();
  const auto slices_to = [&layout](const proto::GridSet& infer) {
    return owner_slices(layout, infer, {.world = {4, 2, 1}}, proto::RenamePolicy{});
  };
  const auto grid_in = [](proto::GridSet& infer, std::string_view name) -> proto::ParameterGrid& {
    return *std::ranges::find(infer.parameters, name, [&infer](const proto::ParameterGrid& grid) -> std::string_view {
      return (*infer.names)[grid.name];
    });
  };
  EXPECT_TRUE(slices_to(fitting).has_value());
  for (const std::string_view name : {"model.embed_tokens.weight", "lm_head.weight"}) {
    proto::GridSet taller = fitting;
    grid_in(taller, name).shape.extent[0] += 2;
    proto::GridSet deeper = fitting;
    grid_in(deeper, name).shape.rank = 3;
    grid_in(deeper, name).shape.extent[2] = 1;
    for (const proto::GridSet& infer : {taller, deeper}) {
      const auto slices = slices_to(infer);
      ASSERT_FALSE(slices.has_value()) << name;
      EXPECT_EQ(slices.error().code, Errc::kInvalid);
      EXPECT_TRUE(slices.error().detail.find(name) != std::string::npos) << slices.error().detail;
    }
  }
}

// Positions are looked up as they stand, so a list that does not ascend could leave the range before its last entry.
TEST(ShardDetect, PositionsThatDoNotAscendAreRefused) {
  const auto world = TrainedWorld::make(small_model(false), {.dp = 2}, nullptr, {.tp = 2}).value();
  const std::vector<OwnerSlice> slices = slices_of_first_owner(world);
  const OwnerSlice& first = slices.front();
  const std::uint64_t owned = world.layout.tensors[first.core].owned(first.owner).size();
  const std::vector<std::uint32_t> visible(owned, 0);
  const auto route = [&](const std::vector<std::uint64_t>& changed) {
    return route_changes(world.layout, slices, {{}, {}, {}, visible}, changed);
  };
  EXPECT_TRUE(route({0, 1, owned - 1}).has_value());
  for (const std::vector<std::uint64_t>& changed :
       {std::vector<std::uint64_t>{owned, 0}, {1, 0}, {2, 2}, {0, owned + 1000, 1}}) {
    const auto patches = route(changed);
    ASSERT_FALSE(patches.has_value());
    EXPECT_EQ(patches.error().code, Errc::kInvalid);
  }
}

// GAP-10: indices are int32 on the wire.
TEST(ShardDetect, RolloutShardsBeyondTheIndexLimitAreRefused) {
  config::ModelDims dims = config::tiny_dims();
  dims.layers = 1;
  dims.experts = 0;
  dims.hidden = 1U << 12;
  dims.vocabulary = 1U << 19;  // 2^31 elements, uncut.
  const config::ModelSpec model = config::qwen3_moe_model(dims).value();
  const CoreLayout layout = megatron_core_layout(model, {}).value();
  const auto slices_for = [&](std::uint32_t tp) {
    return owner_slices(layout, proto::inference_grids(model, {.tp = tp}).value(), {.world = {tp, 1, 1}},
                        proto::RenamePolicy{});
  };
  EXPECT_FALSE(slices_for(1).has_value());
  EXPECT_TRUE(slices_for(2).has_value());
}

}  // namespace
}  // namespace areal::delta
