// Layouts drawn by RapidCheck: uneven pieces on both sides, and models spread over random parallel sizes.
#pragma once
#include <rapidcheck/gtest.h>

#include "tests/plan/plan_fixtures.h"

namespace areal::proto {

// A replica of a parameter of `rows` x `columns`, cut into 1 to `most` uneven pieces along one dimension.
inline ReplicaText random_replica(std::uint32_t rows, std::uint32_t columns, std::uint32_t most,
                                  std::uint32_t first_rank) {
  const bool by_rows = *rc::gen::arbitrary<bool>();
  const std::uint32_t extent = by_rows ? rows : columns;
  const std::uint32_t pieces = *rc::gen::inRange(1U, std::min(most, extent) + 1);
  ReplicaText replica;
  std::uint32_t start = 0;
  for (std::uint32_t piece = 0; piece < pieces; ++piece) {
    const std::uint32_t rest = extent - start;
    const std::uint32_t left = pieces - piece - 1;
    const std::uint32_t size = left == 0 ? rest : *rc::gen::inRange(1U, rest - left + 1);
    ShardText shard;
    shard.rank = first_rank + piece;
    shard.offset = by_rows ? std::vector<std::uint32_t>{start, 0} : std::vector<std::uint32_t>{0, start};
    shard.shape = by_rows ? std::vector<std::uint32_t>{size, columns} : std::vector<std::uint32_t>{rows, size};
    replica.push_back(shard);
    start += size;
  }
  return replica;
}

inline constexpr std::uint32_t kMostPieces = 4;
inline constexpr std::uint32_t kMostReplicas = 3;

struct Layouts {
  MetaSet train;
  MetaSet infer;
  PlanWorld world;
};

// Parameters of two dimensions in up to three replicas of up to four pieces, for up to three engines.
inline Layouts random_layouts() {
  const std::uint32_t engines = *rc::gen::inRange(1U, 4U);
  const std::uint32_t names = *rc::gen::inRange(1U, 4U);
  std::vector<ParameterText> train;
  std::vector<ParameterText> infer;
  for (std::uint32_t name = 0; name < names; ++name) {
    const std::uint32_t rows = *rc::gen::inRange(1U, 9U);
    const std::uint32_t columns = *rc::gen::inRange(1U, 9U);
    ParameterText ours{"layer." + std::to_string(name), {}};
    ParameterText theirs = ours;
    const std::uint32_t copies = *rc::gen::inRange(1U, kMostReplicas + 1);
    for (std::uint32_t i = 0; i < copies; ++i) {
      ours.replicas.push_back(random_replica(rows, columns, kMostPieces, i * kMostPieces));
    }
    const std::uint32_t served = *rc::gen::inRange(1U, kMostReplicas + 1);
    for (std::uint32_t i = 0; i < served; ++i) {
      theirs.replicas.push_back(random_replica(rows, columns, kMostPieces, i * kMostPieces));
    }
    train.push_back(ours);
    infer.push_back(theirs);
  }
  constexpr std::uint32_t kRanks = kMostPieces * kMostReplicas;
  return {make_metas(train), make_metas(infer), {engines * kRanks, kRanks, engines}};
}

// The tiny model under two random parallel layouts.
struct ModelLayouts {
  config::ModelSpec model;
  config::ParallelStrategy train;
  config::ParallelStrategy infer;
  PlanWorld world;
};

inline std::uint32_t random_size(std::initializer_list<std::uint32_t> sizes) {
  return *rc::gen::elementOf(std::vector<std::uint32_t>(sizes));
}

inline ModelLayouts random_model_layouts() {
  ModelLayouts layouts;
  layouts.train = {.dp = random_size({1, 2, 3, 4}),
                   .tp = random_size({1, 2, 4}),
                   .pp = random_size({1, 2}),
                   .cp = random_size({1, 2})};
  const std::uint32_t stage = layouts.train.world_size() / layouts.train.pp;
  layouts.train.ep = random_size({1, 2, 4});
  layouts.train.etp = random_size({1, 2});
  if (stage % (layouts.train.ep * layouts.train.etp) != 0) layouts.train.ep = layouts.train.etp = 1;
  layouts.infer = {.dp = random_size({1, 2, 3, 5}), .tp = random_size({1, 2, 4}), .pp = random_size({1, 2})};
  if (layouts.infer.tp % 2 == 0) layouts.infer.ep = random_size({1, 2});
  config::ModelDims dims = config::tiny_dims();
  dims.tied_embedding = *rc::gen::arbitrary<bool>();
  layouts.model = config::qwen3_moe_model(dims).value();
  const std::uint32_t instance = layouts.infer.tp * layouts.infer.pp;
  layouts.world = {layouts.infer.dp * instance, layouts.train.world_size(), layouts.infer.dp};
  return layouts;
}

}  // namespace areal::proto
