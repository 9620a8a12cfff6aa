#include "engine/delta/shard/owner_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/base/check.h"
#include "engine/delta/remap.h"
#include "engine/delta/shard/view_index.h"
#include "engine/proto/key_contract.h"
#include "engine/proto/overlap.h"

namespace areal::delta {
namespace {

using proto::GridPlace;
using proto::GridSet;
using proto::ParameterGrid;
using proto::Region;
using proto::ShardMeta;

std::uint64_t flat_index(const proto::Shape& shape, const proto::Offsets& at) {
  std::uint64_t flat = 0;
  for (std::size_t i = 0; i < shape.rank; ++i) flat = flat * shape.extent[i] + at[i];
  return flat;
}

class SliceFinder {
 public:
  SliceFinder(const CoreLayout& layout, const GridSet& infer, const OwnerOptions& options)
      : layout_(layout), infer_(infer), options_(options), world_(options.world) {}

  void find(std::uint32_t core, std::uint32_t part, const proto::MatchedName& match) {
    core_ = core;
    part_ = part;
    target_ = match.infer;
    source_ = match.stands_for ? &infer_.parameters[*match.stands_for] : nullptr;
    const ParameterGrid& receiver = infer_.parameters[target_];
    const CoreTensor& tensor = layout_.tensors[core];
    const std::uint32_t senders = tensor.ranks.replicas();
    for (std::uint32_t engine = 0; engine < world_.engines; ++engine) {
      for (std::uint32_t replica = 0; replica < receiver.replicas(); ++replica) {
        const std::uint64_t number = std::uint64_t{engine} * receiver.replicas() + replica;
        const auto from = static_cast<std::uint32_t>(number % senders);
        if (!concerns(engine, replica, from)) continue;
        for (std::uint32_t piece = 0; piece < receiver.pieces(); ++piece) {
          to_shard(receiver.shard({replica, piece}), engine, from);
        }
      }
    }
  }

  std::vector<OwnerSlice> take() { return std::move(slices_); }

 private:
  // Whether the rank whose part is wanted can be among those who send or receive.
  [[nodiscard]] bool concerns(std::uint32_t engine, std::uint32_t replica, std::uint32_t from) const {
    if (!options_.only_rank.has_value()) return true;
    if (!world_.is_training(*options_.only_rank)) {
      const auto place = infer_.parameters[target_].place_of(*options_.only_rank % world_.instance());
      return *options_.only_rank / world_.instance() == engine && place && place->replica == replica;
    }
    const auto place = layout_.tensors[core_].ranks.place_of(*options_.only_rank - world_.infer_world);
    return place && place->replica == from;
  }

  // Where two names are one storage, what is written under one is written under the other.
  [[nodiscard]] bool is_shared(const ShardMeta& shard) const {
    if (source_ == nullptr) return false;
    const auto place = source_->place_of(shard.global_rank);
    if (!place) return false;
    const ShardMeta other = source_->shard(*place);
    return other.offset == shard.offset && other.shape == shard.shape;
  }

  void to_shard(const ShardMeta& shard, std::uint32_t engine, std::uint32_t from) {
    const std::uint32_t recv = world_.infer_rank(shard.global_rank, engine);
    if (is_foreign_receiver(recv) || is_shared(shard)) return;
    const CoreTensor& tensor = layout_.tensors[core_];
    const CorePart& part = tensor.parts[part_];
    for (std::uint32_t piece = 0; piece < tensor.ranks.tensor_pieces; ++piece) {
      const ShardMeta slice{0, part.view.shape, tensor.slice_offset(part, piece), part.view.shape.rank};
      const std::optional<Region> region = proto::overlap_of(slice, shard);
      if (region.has_value()) from_owners(*region, slice, shard, piece, from, recv);
    }
  }

  [[nodiscard]] bool is_foreign_receiver(std::uint32_t recv) const {
    return options_.only_rank.has_value() && !world_.is_training(*options_.only_rank) && *options_.only_rank != recv;
  }

  void from_owners(const Region& region, const ShardMeta& slice, const ShardMeta& shard, std::uint32_t piece,
                   std::uint32_t from, std::uint32_t recv) {
    const CoreTensor& tensor = layout_.tensors[core_];
    const proto::TensorView& view = tensor.parts[part_].view;
    proto::Offsets last = region.send_offset;
    for (std::size_t i = 0; i < slice.shape.rank; ++i) last[i] += region.extent.extent[i] - 1;
    const std::uint64_t first_flat = source_index(view, flat_index(slice.shape, region.send_offset));
    const std::uint64_t last_flat = source_index(view, flat_index(slice.shape, last));
    for (std::uint32_t owner = tensor.owner_of(first_flat); owner <= tensor.owner_of(last_flat); ++owner) {
      if (tensor.owned(owner).size() == 0) continue;
      const std::uint32_t send = world_.train_rank(tensor.ranks.rank_of({from, piece * tensor.owners() + owner}));
      const bool is_foreign =
          options_.only_rank.has_value() && world_.is_training(*options_.only_rank) && *options_.only_rank != send;
      if (is_foreign) continue;
      OwnerSlice made;
      made.core = core_;
      made.part = part_;
      made.piece = piece;
      made.owner = owner;
      made.target = target_;
      made.send = static_cast<proto::TransferRank>(send);
      made.recv = static_cast<proto::TransferRank>(recv);
      made.storage = layout_.model.parameters[tensor.parts[part_].parameter].storage;
      made.wire = infer_.parameters[target_].dtype;
      made.shard_offset = shard.offset;
      made.shard = shard.shape;
      for (std::size_t i = 0; i < shard.shape.rank; ++i) {
        made.begin[i] = shard.offset[i] + region.recv_offset[i];
        made.end[i] = made.begin[i] + region.extent.extent[i];
      }
      slices_.push_back(made);
    }
  }

  const CoreLayout& layout_;
  const GridSet& infer_;
  const OwnerOptions& options_;
  proto::PlanWorld world_;
  std::uint32_t core_ = 0;
  std::uint32_t part_ = 0;
  std::uint32_t target_ = 0;
  const ParameterGrid* source_ = nullptr;  // What the target is an alias of.
  std::vector<OwnerSlice> slices_;
};

Status check_sizes(const CoreLayout& layout, const GridSet& infer, const proto::PlanWorld& world) {
  AREAL_TRY(proto::check_world(world));
  if (layout.world > world.train_world || infer.world > world.instance()) {
    return Error{Errc::kInvalid, fmt::format("layouts of {} and {} ranks in a world of {} and {}", layout.world,
                                             infer.world, world.train_world, world.instance())};
  }
  for (const ParameterGrid& grid : infer.parameters) {
    if (grid.shard({0, 0}).shape.elements() < kIndexLimit) continue;
    return Error{Errc::kInvalid,
                 fmt::format("a shard of {} has 2**31 or more elements: its indices would overflow int32",
                             (*infer.names)[grid.name])};
  }
  return Unit{};
}

// The engines' parameters that each training parameter goes to: its own name, and aliases of that.
Result<std::vector<std::vector<proto::MatchedName>>> targets_of(const CoreLayout& layout, const GridSet& infer,
                                                                const proto::NamePolicy& policy) {
  const std::vector<config::Parameter>& ours = layout.model.parameters;
  std::vector<std::string_view> names;
  for (const config::Parameter& parameter : ours) names.push_back(layout.model.name_of(parameter));
  Result<std::vector<proto::MatchedName>> matched = proto::match_names(names, proto::names_of(infer), policy, false);
  if (!matched) return std::move(matched).error();
  std::vector<std::vector<proto::MatchedName>> targets(ours.size());
  for (const proto::MatchedName& match : proto::with_aliases(std::move(*matched), infer, layout.model.aliases)) {
    const ParameterGrid& receiver = infer.parameters[match.infer];
    if (!(ours[match.train].shape == receiver.shape)) {
      return Error{Errc::kInvalid, fmt::format("{} is of another size on either side", (*infer.names)[receiver.name])};
    }
    targets[match.train].push_back(match);
  }
  return targets;
}

}  // namespace

Result<std::vector<OwnerSlice>> owner_slices(const CoreLayout& layout, const GridSet& infer,
                                             const OwnerOptions& options, const proto::NamePolicy& policy) {
  AREAL_TRY(check_sizes(layout, infer, options.world));
  Result<std::vector<std::vector<proto::MatchedName>>> targets = targets_of(layout, infer, policy);
  if (!targets) return std::move(targets).error();
  SliceFinder finder(layout, infer, options);
  for (std::uint32_t core = 0; core < layout.tensors.size(); ++core) {
    for (std::uint32_t part = 0; part < layout.tensors[core].parts.size(); ++part) {
      for (const proto::MatchedName& match : (*targets)[layout.tensors[core].parts[part].parameter]) {
        finder.find(core, part, match);
      }
    }
  }
  std::vector<OwnerSlice> slices = finder.take();
  std::ranges::stable_sort(slices, {}, [&infer](const OwnerSlice& slice) {
    return std::tuple(slice.send, slice.recv, std::string_view((*infer.names)[infer.parameters[slice.target].name]));
  });
  return slices;
}

std::span<const OwnerSlice> slices_between(std::span<const OwnerSlice> slices, std::uint32_t send, std::uint32_t recv) {
  const auto found = std::ranges::equal_range(slices, std::pair(send, recv), {}, [](const OwnerSlice& slice) {
    return std::pair<std::uint32_t, std::uint32_t>(slice.send, slice.recv);
  });
  return {found.begin(), found.end()};
}

}  // namespace areal::delta
