// Shards that detect alone against the reference's reductions and gathers, on random layouts and random updates.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/shard/trained_world.h"

namespace areal::delta {
namespace {

std::uint32_t one_of(std::initializer_list<std::uint32_t> sizes) {
  return *rc::gen::elementOf(std::vector<std::uint32_t>(sizes));
}

config::ModelSpec random_model() {
  config::ModelDims dims = config::tiny_dims();
  dims.layers = 2;
  dims.experts = one_of({0, 4});
  dims.hidden = one_of({12, 16});
  dims.head_dim = 4;
  dims.vocabulary = 20;
  dims.mlp_width = 8;
  dims.tied_embedding = *rc::gen::arbitrary<bool>();
  dims.router_storage = *rc::gen::element(DType::kBf16, DType::kF32);
  dims.router_wire = *rc::gen::element(DType::kBf16, DType::kF32);
  return config::qwen3_moe_model(dims).value();
}

Result<TrainedWorld> random_world(const config::ModelSpec& model) {
  config::ParallelStrategy train{
      .dp = one_of({1, 2, 3}), .tp = one_of({1, 2, 4}), .pp = one_of({1, 2}), .cp = one_of({1, 2})};
  const std::uint32_t stage = train.world_size() / train.pp;
  train.ep = one_of({1, 2});
  train.etp = one_of({1, 2});
  if (stage % (train.ep * train.etp) != 0) train.ep = train.etp = 1;
  config::ParallelStrategy infer{.dp = one_of({1, 2}), .tp = one_of({1, 2, 4}), .pp = one_of({1, 2})};
  if (infer.tp > 1) infer.ep = one_of({1, 2});
  const proto::FsdpSizes sizes{.shards = *rc::gen::inRange(1U, 7U), .tp = one_of({1, 2}), .copies = one_of({1, 2})};
  return TrainedWorld::make(model, train, *rc::gen::arbitrary<bool>() ? &sizes : nullptr, infer);
}

// Owners of random flat ranges, some of them of nothing: what a distributed optimizer with buckets has.
void cut_anew(CoreLayout& layout) {
  for (CoreTensor& tensor : layout.tensors) {
    if (*rc::gen::inRange(0, 3) != 0) continue;
    const std::uint64_t elements = tensor.piece.elements();
    tensor.cuts = {0, elements};
    for (std::uint32_t i = 1; i < tensor.owners(); ++i) {
      tensor.cuts.push_back(*rc::gen::inRange<std::uint64_t>(0, elements + 1));
    }
    std::ranges::stable_sort(tensor.cuts);
  }
}

AdamWSettings random_settings() {
  return {.learning_rate = *rc::gen::element(1e-6, 1e-5, 3e-4),
          .weight_decay = *rc::gen::element(0.0, 0.01),
          .beta1 = 0.9,
          .beta2 = *rc::gen::element(0.95, 0.999)};
}

// What the reference never sends: an alias that has storage of its own.
std::vector<Received> without_aliases(const TrainedWorld& world, std::vector<Received> received) {
  for (Received& rank : received) {
    std::erase_if(rank, [&](const auto& entry) {
      return world.layout.model.find(world.infer.parameters[entry.first.first].name) == nullptr;
    });
  }
  return received;
}

RC_GTEST_PROP(ShardDetect, MarginFindsWhatReductionsFind, (std::uint64_t seed)) {
  auto world = random_world(random_model());
  RC_PRE(world.has_value());
  cut_anew(world->layout);
  if (*rc::gen::arbitrary<bool>()) world->dense_suffixes = "";
  world->train(random_settings(), *rc::gen::inRange<std::uint64_t>(1, 200), seed);
  const auto shards = without_aliases(*world, world->by_shards(margin_rule(world->inversion), world->slices()));
  RC_ASSERT(shards == world->by_reduction());
}

RC_GTEST_PROP(ShardDetect, ProvenBoundMissesNothing, (std::uint64_t seed)) {
  auto world = random_world(random_model());
  RC_PRE(world.has_value());
  world->train(random_settings(), *rc::gen::inRange<std::uint64_t>(1, 200), seed);
  const auto found = world->by_shards(proven_rule(world->proven), world->slices());
  const auto truth = world->truth();
  for (std::size_t rank = 0; rank < truth.size(); ++rank) {
    for (const auto& [place, bits] : truth[rank]) {
      const auto sent = found[rank].find(place);
      RC_ASSERT(sent != found[rank].end());
      RC_ASSERT(sent->second == bits);
    }
  }
}

// Everything changed: then every element of every engine, aliases too, must be reached once.
RC_GTEST_PROP(ShardDetect, OwnerSlicesReachEveryElementOnce, (std::uint64_t seed)) {
  auto world = random_world(random_model());
  RC_PRE(world.has_value());
  cut_anew(world->layout);
  world->dense_suffixes = ".weight";
  world->train({}, 1, seed);
  const std::vector<OwnerSlice> slices = world->slices();
  const auto received = world->by_shards(margin_rule(world->inversion), slices);
  for (std::uint32_t rank = 0; rank < world->world.infer_world; ++rank) {
    const std::uint32_t local = rank % world->world.instance();
    std::uint64_t held = 0;
    for (const proto::ParameterGrid& grid : world->infer.parameters) {
      const auto place = grid.place_of(local);
      if (!place) continue;
      const bool is_alias = world->layout.model.find(grid.name) == nullptr;
      const auto source =
          std::ranges::find(world->infer.parameters, is_alias ? world->layout.model.aliases[0].source : grid.name,
                            &proto::ParameterGrid::name);
      // An alias beside its source is written with it.
      if (!is_alias || !source->place_of(local).has_value()) held += grid.shard(*place).shape.elements();
    }
    RC_ASSERT(received[rank].size() == held);
  }
}

// What one rank computes alone is what the whole list says of it.
RC_GTEST_PROP(ShardDetect, EachRankComesToItsOwnSlices, ()) {
  auto world = random_world(random_model());
  RC_PRE(world.has_value());
  const std::vector<OwnerSlice> slices = world->slices();
  std::size_t seen = 0;
  for (std::uint32_t rank = 0; rank < world->world.world(); ++rank) {
    const auto mine =
        owner_slices(world->layout, world->infer, {.world = world->world, .only_rank = rank}, proto::RenamePolicy{})
            .value();
    std::vector<OwnerSlice> wanted;
    for (const OwnerSlice& slice : slices) {
      if (slice.send == rank || slice.recv == rank) wanted.push_back(slice);
    }
    const auto same = [](const OwnerSlice& a, const OwnerSlice& b) {
      return a.core == b.core && a.part == b.part && a.piece == b.piece && a.owner == b.owner && a.target == b.target &&
             a.send == b.send && a.recv == b.recv && a.begin == b.begin && a.end == b.end;
    };
    RC_ASSERT(std::ranges::equal(mine, wanted, same));
    if (!world->world.is_training(rank)) continue;
    for (std::uint32_t recv = 0; recv < world->world.infer_world; ++recv) {
      seen += slices_between(slices, rank, recv).size();
    }
  }
  RC_ASSERT(seen == slices.size());
}

}  // namespace
}  // namespace areal::delta
