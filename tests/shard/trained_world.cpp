#include "tests/shard/trained_world.h"

#include <gtest/gtest.h>

#include <bit>

#include "engine/base/rng.h"
#include "engine/delta/shard/view_index.h"
#include "engine/proto/layout_convert.h"
#include "engine/proto/shard_book.h"

namespace areal::delta {

std::uint32_t bits_in(float weight, DType dtype) {
  return dtype == DType::kBf16 ? to_bf16(weight) : std::bit_cast<std::uint32_t>(weight);
}

Result<TrainedWorld> TrainedWorld::make(const config::ModelSpec& model, const config::ParallelStrategy& train,
                                        const proto::FsdpSizes* fsdp, const config::ParallelStrategy& infer) {
  TrainedWorld made;
  auto layout = fsdp != nullptr ? fsdp_core_layout(model, *fsdp) : megatron_core_layout(model, train);
  if (!layout) return std::move(layout).error();
  auto grids = fsdp != nullptr ? proto::fsdp_grids(model, *fsdp) : proto::training_grids(model, train);
  if (!grids) return std::move(grids).error();
  auto engines = proto::inference_grids(model, infer);
  if (!engines) return std::move(engines).error();
  made.layout = std::move(*layout);
  made.train_grids = std::move(*grids);
  made.infer = std::move(*engines);
  made.world = {infer.dp * made.infer.world, made.layout.world, infer.dp};
  made.is_sharded = fsdp != nullptr;
  return made;
}

void TrainedWorld::train(const AdamWSettings& settings, std::uint64_t t, std::uint64_t seed) {
  Rng rng(seed);
  const auto draw = [&rng] { return (static_cast<float>(rng.draw_below(1U << 24)) / (1U << 23)) - 1.0F; };
  const AdamWScalars scalars = adamw_scalars(settings, t);
  inversion = inversion_scalars(settings, t);
  proven = proven_step(settings, t);
  trained.clear();
  for (const config::Parameter& parameter : layout.model.parameters) {
    Trained now;
    std::vector<float> gradients;
    for (std::uint64_t i = 0; i < parameter.shape.elements(); ++i) {
      const bool is_still = rng.draw_chance(1, 6);
      now.before.push_back(rng.draw_chance(1, 16) ? 0.0F : 0.02F * draw());
      now.exp_avg.push_back(is_still ? 0.0F : 1e-4F * draw());
      now.exp_avg_sq.push_back(is_still ? 0.0F : 1e-8F * (1.001F + draw()));
      gradients.push_back(is_still ? 0.0F : 1e-4F * draw());
    }
    now.after = now.before;
    adamw_step(scalars, {now.after, now.exp_avg, now.exp_avg_sq, gradients});
    trained.push_back(std::move(now));
  }
}

DType TrainedWorld::storage_of(const CoreTensor& tensor) const {
  return layout.model.parameters[tensor.parts.front().parameter].storage;
}

TrainedWorld::Piece TrainedWorld::piece_of(const CoreTensor& tensor, std::uint32_t piece) const {
  const std::uint64_t elements = tensor.piece.elements();
  Piece made{std::vector<float>(elements), std::vector<float>(elements), std::vector<float>(elements),
             std::vector<std::uint32_t>(elements)};
  for (const CorePart& part : tensor.parts) {
    const proto::Offsets offset = tensor.slice_offset(part, piece);
    const proto::Shape& whole = layout.model.parameters[part.parameter].shape;
    const Trained& values = trained[part.parameter];
    std::uint64_t index = 0;
    part.view.each([&](std::uint64_t at) {
      std::uint64_t rest = index++;
      std::uint64_t flat = 0;
      std::uint64_t step = 1;
      for (std::size_t d = whole.rank; d-- > 0;) {
        flat += (rest % part.view.shape.extent[d] + offset[d]) * step;
        rest /= part.view.shape.extent[d];
        step *= whole.extent[d];
      }
      made.weights[at] = values.after[flat];
      made.exp_avg[at] = values.exp_avg[flat];
      made.exp_avg_sq[at] = values.exp_avg_sq[flat];
      made.visible[at] = bits_in(values.after[flat], storage_of(tensor));
    });
  }
  return made;
}

std::vector<OwnerSlice> TrainedWorld::slices() const {
  return owner_slices(layout, infer, {.world = world}, proto::RenamePolicy{}).value();
}

std::vector<Received> TrainedWorld::by_shards(const ShardRule& rule, std::span<const OwnerSlice> slices) const {
  std::vector<Received> received(world.infer_world);
  for (std::uint32_t core = 0; core < layout.tensors.size(); ++core) {
    const CoreTensor& tensor = layout.tensors[core];
    for (std::uint32_t piece = 0; piece < tensor.ranks.tensor_pieces; ++piece) {
      const Piece held = piece_of(tensor, piece);
      for (std::uint32_t owner = 0; owner < tensor.owners(); ++owner) {
        // All replicas of this owner together: their slices go to different receivers.
        std::vector<OwnerSlice> mine;
        for (const OwnerSlice& slice : slices) {
          if (slice.core == core && slice.piece == piece && slice.owner == owner) mine.push_back(slice);
        }
        const FlatRange owned = tensor.owned(owner);
        const OwnedState state{std::span(held.weights).subspan(owned.begin, owned.size()),
                               std::span(held.exp_avg).subspan(owned.begin, owned.size()),
                               std::span(held.exp_avg_sq).subspan(owned.begin, owned.size()),
                               std::span(held.visible).subspan(owned.begin, owned.size()), storage_of(tensor)};
        const std::string& name = layout.model.name_of(layout.model.parameters[tensor.parts.front().parameter]);
        const bool is_dense = is_forced_dense(name, dense_suffixes);
        const auto changed = is_dense ? all_elements(state) : changed_elements(state, rule);
        const auto patches = route_changes(layout, mine, state, changed);
        EXPECT_TRUE(patches.has_value());
        if (!patches) return received;
        for (std::size_t i = 0; i < mine.size(); ++i) {
          const SparsePatch& patch = (*patches)[i];
          EXPECT_TRUE(check_patch(view_of(patch), mine[i].wire, mine[i].shard.elements()).has_value());
          EXPECT_TRUE(std::ranges::is_sorted(patch.indices));
          for (std::size_t k = 0; k < patch.indices.size(); ++k) {
            const bool is_new =
                received[mine[i].recv].emplace(std::pair(mine[i].target, patch.indices[k]), patch.values[k]).second;
            EXPECT_TRUE(is_new) << "written twice";
          }
        }
      }
    }
  }
  return received;
}

namespace {

// Pieces put together as the framework's own gather does; of gate and up each for itself.
template <class T>
std::vector<T> gathered(const CoreTensor& tensor, const std::vector<std::vector<T>>& pieces) {
  const std::size_t rows = tensor.piece.extent[0];
  const std::size_t width = proto::row_size(tensor.piece);
  std::vector<T> whole;
  const auto append = [&](const std::vector<T>& piece, std::size_t first, std::size_t count) {
    whole.insert(whole.end(), piece.begin() + static_cast<std::ptrdiff_t>(first),
                 piece.begin() + static_cast<std::ptrdiff_t>(first + count));
  };
  if (tensor.name.find("linear_fc1.weight") != std::string::npos) {
    for (const std::size_t half : {std::size_t{0}, rows / 2}) {
      for (const std::vector<T>& piece : pieces) append(piece, half * width, rows / 2 * width);
    }
  } else if (tensor.cut == 0) {
    for (const std::vector<T>& piece : pieces) append(piece, 0, piece.size());
  } else {
    for (std::size_t row = 0; row < rows; ++row) {
      for (const std::vector<T>& piece : pieces) append(piece, row * width, width);
    }
  }
  return whole;
}

}  // namespace

void TrainedWorld::mask(const CoreTensor& tensor, std::vector<std::vector<std::uint8_t>>& masks) const {
  const DType storage = storage_of(tensor);
  const std::uint32_t tensor_ranks = tensor.ranks.tensor_pieces;
  std::vector<std::vector<std::uint32_t>> live;
  std::vector<std::vector<float>> old;
  for (std::uint32_t piece = 0; piece < tensor_ranks; ++piece) {
    const Piece held = piece_of(tensor, piece);
    std::vector<float> sum(held.weights.size(), 0.0F);
    for (std::uint32_t owner = 0; owner < tensor.owners(); ++owner) {
      std::vector<float> correction(held.weights.size(), 0.0F);
      for (std::uint64_t i = tensor.owned(owner).begin; i < tensor.owned(owner).end; ++i) {
        const float previous = invert_adamw(inversion, held.weights[i], held.exp_avg[i], held.exp_avg_sq[i]);
        const float visible = storage == DType::kBf16 ? from_bf16(static_cast<std::uint16_t>(held.visible[i]))
                                                      : std::bit_cast<float>(held.visible[i]);
        correction[i] = previous - visible;
      }
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += correction[i];
    }
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += storage == DType::kBf16 ? from_bf16(static_cast<std::uint16_t>(held.visible[i]))
                                        : std::bit_cast<float>(held.visible[i]);
    }
    live.push_back(held.visible);
    old.push_back(std::move(sum));
  }
  const std::vector<std::uint32_t> bits = gathered(tensor, live);
  const std::vector<float> previous = gathered(tensor, old);
  proto::Shape whole = tensor.piece;
  if (tensor_ranks > 1) whole.extent[tensor.cut] *= tensor_ranks;
  const config::ModelDims& dims = layout.model.dims;
  const proto::Views views =
      is_sharded ? proto::Views{proto::row_view(tensor.name, whole, 0, whole.extent[0])}
                 : proto::megatron_to_checkpoint(
                       tensor.name, whole, {dims.heads, dims.kv_heads, dims.hidden, dims.head_dim}, dims.experts > 0)
                       .value();
  for (const proto::TensorView& view : views) {
    const config::Parameter* parameter = layout.model.find(view.name);
    const auto at = static_cast<std::size_t>(parameter - layout.model.parameters.data());
    const bool is_dense = is_forced_dense(view.name, dense_suffixes);
    std::size_t element = 0;
    view.each([&](std::uint64_t i) {
      // The conversion must find the weights where the checkpoint has them.
      EXPECT_EQ(bits[i], bits_in(trained[at].after[element], storage)) << view.name << " " << element;
      ++element;
      const bool differs = storage == DType::kBf16
                               ? bf16_changed(previous[i], static_cast<std::uint16_t>(bits[i]), kReferenceMargin)
                               : f32_changed(previous[i], bits[i]);
      masks[at].push_back(is_dense || differs ? 1 : 0);
    });
    EXPECT_EQ(element, parameter->shape.elements());
  }
}

std::vector<Received> TrainedWorld::by_reduction() const {
  std::vector<std::vector<std::uint8_t>> masks(trained.size());
  for (const CoreTensor& tensor : layout.tensors) mask(tensor, masks);
  const proto::MetaSet ours = metas_of(train_grids);
  const proto::MetaSet theirs = metas_of(infer);
  const auto plan = proto::build_transfer_plan(ours, theirs, {.world = world}, proto::RenamePolicy{}).value();
  const proto::ShardBook book(ours);
  const proto::ShardBook engines(theirs);
  std::vector<Received> received(world.infer_world);
  for (const proto::PlanOp& op : plan->ops) {
    const proto::PlanTensor& tensor = plan->tensors[op.tensor];
    const std::uint32_t parameter = *book.parameter_of(tensor.train_name);
    const std::uint32_t target = *engines.parameter_of(tensor.infer_name);
    const proto::ShardMeta sent = book.find(parameter, op.send - world.infer_world)->shard;
    const proto::ShardMeta shard = engines.find(target, op.recv % world.instance())->shard;
    const proto::Shape& whole = layout.model.parameters[parameter].shape;
    std::vector<std::uint8_t> changed;
    std::vector<std::uint32_t> words;
    for (std::uint64_t i = 0; i < sent.shape.elements(); ++i) {
      std::uint64_t rest = i;
      std::uint64_t flat = 0;
      std::uint64_t step = 1;
      for (std::size_t d = whole.rank; d-- > 0;) {
        flat += (rest % sent.shape.extent[d] + sent.offset[d]) * step;
        rest /= sent.shape.extent[d];
        step *= whole.extent[d];
      }
      changed.push_back(masks[parameter][flat]);
      words.push_back(bits_in(trained[parameter].after[flat], op.storage));
    }
    RemapBox box;
    const proto::Region& region = plan->regions[op.region];
    for (std::size_t d = 0; d < whole.rank; ++d) {
      box.dims.push_back({sent.shape.extent[d],
                          {region.send_offset[d], region.send_offset[d] + region.extent.extent[d]},
                          shard.shape.extent[d],
                          {region.recv_offset[d], region.recv_offset[d] + region.extent.extent[d]}});
    }
    const SparseSource source{true, change_mask(changed), {op.storage, {}, words}};
    const SparseOp sparse{0, box, op.wire};
    const auto payloads = build_payloads(std::span(&source, 1), std::span(&sparse, 1));
    EXPECT_TRUE(payloads.has_value());
    const SparsePatch& patch = payloads->patches.front();
    for (std::size_t k = 0; k < patch.indices.size(); ++k) {
      received[op.recv].emplace(std::pair(target, patch.indices[k]), patch.values[k]);
    }
  }
  return received;
}

std::vector<Received> TrainedWorld::truth() const {
  std::vector<Received> changed(world.infer_world);
  for (std::uint32_t target = 0; target < infer.parameters.size(); ++target) {
    const proto::ParameterGrid& grid = infer.parameters[target];
    const config::Parameter* parameter = layout.model.find(grid.name);
    if (parameter == nullptr) continue;
    const Trained& values = trained[static_cast<std::size_t>(parameter - layout.model.parameters.data())];
    for (std::uint32_t rank = 0; rank < world.infer_world; ++rank) {
      const auto place = grid.place_of(rank % world.instance());
      if (!place) continue;
      const proto::ShardMeta shard = grid.shard(*place);
      for (std::uint64_t i = 0; i < shard.shape.elements(); ++i) {
        std::uint64_t rest = i;
        std::uint64_t flat = 0;
        std::uint64_t step = 1;
        for (std::size_t d = grid.shape.rank; d-- > 0;) {
          flat += (rest % shard.shape.extent[d] + shard.offset[d]) * step;
          rest /= shard.shape.extent[d];
          step *= grid.shape.extent[d];
        }
        const std::uint32_t now = bits_in(values.after[flat], parameter->storage);
        if (bits_in(values.before[flat], parameter->storage) == now) continue;
        // Through the storage dtype: what training ranks do not show cannot be sent.
        const float shown =
            parameter->storage == DType::kBf16 ? from_bf16(static_cast<std::uint16_t>(now)) : std::bit_cast<float>(now);
        const std::uint32_t sent = bits_in(shown, grid.dtype);
        changed[rank].emplace(std::pair(target, static_cast<std::int32_t>(i)), sent);
      }
    }
  }
  return changed;
}

}  // namespace areal::delta
