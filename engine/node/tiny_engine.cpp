#include "engine/node/tiny_engine.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "engine/delta/element_digest.h"
#include "engine/proto/sharding.h"

namespace areal::node {
namespace {

using config::ModelSpec;
using config::Parameter;
using proto::MetaSet;
using proto::Offsets;
using proto::ParameterMeta;
using proto::ReplicaMeta;
using proto::ShardMeta;

constexpr std::uint32_t kNoPart = 0xFFFFFFFF;

struct Box {
  config::Shape outer;
  Offsets offset{};
  config::Shape extent;
};

// Appends base + the row-major index in `outer` of every element of the box, last dimension fastest.
void append_box(std::vector<std::uint32_t>& out, std::uint32_t base, const Box& box) {
  std::array<std::uint32_t, proto::kMaxTensorRank> outer{1, 1, 1};
  std::array<std::uint32_t, proto::kMaxTensorRank> extent{1, 1, 1};
  for (std::size_t d = 0; d < box.outer.rank; ++d) {
    outer[d] = box.outer.extent[d];
    extent[d] = box.extent.extent[d];
  }
  for (std::uint32_t i = 0; i < extent[0]; ++i) {
    for (std::uint32_t j = 0; j < extent[1]; ++j) {
      const std::uint32_t row = ((box.offset[0] + i) * outer[1] + box.offset[1] + j) * outer[2] + box.offset[2];
      for (std::uint32_t k = 0; k < extent[2]; ++k) out.push_back(base + row + k);
    }
  }
}

delta::RemapBox remap_box(const ShardMeta& train, const ShardMeta& infer, const proto::Region& region) {
  delta::RemapBox box;
  for (std::size_t d = 0; d < region.extent.rank; ++d) {
    const std::uint64_t length = region.extent.extent[d];
    box.dims.push_back({train.shape.extent[d],
                        {region.send_offset[d], region.send_offset[d] + length, 1},
                        infer.shape.extent[d],
                        {region.recv_offset[d], region.recv_offset[d] + length, 1}});
  }
  return box;
}

class ShapeBuilder {
 public:
  ShapeBuilder(TinyShape& shape, const ModelSpec& full, const proto::ReconstructPlans* reconstruct)
      : shape_(shape), full_(full), reconstruct_(reconstruct) {}

  void build() {
    number_cells();
    hold(shape_.train, shape_.world().train_world, shape_.trainers, train_parts_);
    hold(shape_.infer, shape_.world().instance(), shape_.replicas, infer_parts_);
    shape_.writes.resize(shape_.world().infer_world);
    for (const proto::PeerList& list : shape_.plan->lists) add_stream(list);
    for (std::vector<TinyWrite>& writes : shape_.writes) {
      std::ranges::stable_sort(writes, {}, &TinyWrite::tensor);
    }
    own_slices();
    cut_windows();
  }

 private:
  // Of the parts of one side: [rank * tensors + tensor] is the index into the rank's parts, and where its shard is.
  struct PartIndex {
    std::vector<std::uint32_t> part;
    std::vector<const ShardMeta*> shard;
  };

  [[nodiscard]] std::size_t tensors() const { return shape_.model.parameters.size(); }

  // REQUIRES: there is such a tensor.
  [[nodiscard]] std::uint32_t tensor_of(std::uint32_t name) const {
    const Parameter* parameter = shape_.model.find(name);
    AREAL_CHECK(parameter != nullptr);
    return static_cast<std::uint32_t>(parameter - shape_.model.parameters.data());
  }

  void number_cells() {
    for (const Parameter& parameter : shape_.model.parameters) {
      first_cell_.push_back(static_cast<std::uint32_t>(shape_.keys.size()));
      for (std::uint64_t i = 0; i < parameter.shape.elements(); ++i) {
        shape_.keys.push_back(delta::element_key(parameter.name, i));
      }
    }
  }

  void hold(const MetaSet& metas, std::uint32_t world, std::vector<TinyHolding>& holdings, PartIndex& index) {
    holdings.resize(world);
    index.part.assign(world * tensors(), kNoPart);
    index.shard.assign(world * tensors(), nullptr);
    for (const ParameterMeta& meta : metas.parameters) {
      // An alias is no part of its own.
      if (shape_.model.find(meta.name) == nullptr) continue;
      const std::uint32_t tensor = tensor_of(meta.name);
      for (const ReplicaMeta& replica : metas.replicas_of(meta)) {
        for (const ShardMeta& shard : metas.shards_of(replica)) add_part(tensor, shard, holdings, index);
      }
    }
  }

  void add_part(std::uint32_t tensor, const ShardMeta& shard, std::vector<TinyHolding>& holdings, PartIndex& index) {
    const Parameter& parameter = shape_.model.parameters[tensor];
    TinyHolding& holding = holdings[shard.global_rank];
    const std::size_t place = shard.global_rank * tensors() + tensor;
    AREAL_CHECK(index.part[place] == kNoPart);
    index.part[place] = static_cast<std::uint32_t>(holding.parts.size());
    index.shard[place] = &shard;
    const auto first = static_cast<std::uint32_t>(holding.cells.size());
    append_box(holding.cells, first_cell_[tensor], {parameter.shape, shard.offset, shard.shape});
    holding.copies.resize(holding.cells.size(), 0);
    holding.parts.push_back(
        {tensor, first, static_cast<std::uint32_t>(holding.cells.size()) - first, parameter.storage, parameter.wire});
    for (const config::Alias& alias : shape_.model.aliases) {
      if (alias.source != parameter.name) continue;
      TinyAlias& added = holding.aliases.emplace_back();
      added.part = index.part[place];
      for (std::size_t i = first; i < holding.cells.size(); ++i) {
        added.keys.push_back(delta::element_key(alias.name, holding.cells[i] - first_cell_[tensor]));
      }
    }
  }

  // The optimizer is distributed: of a part that n ranks hold, the k-th owns the k-th of n slices.
  void own_slices() {
    for (std::size_t rank = 0; rank < shape_.trainers.size(); ++rank) {
      for (TinyPart& part : shape_.trainers[rank].parts) {
        const auto kind = proto::replica_kind(shape_.model.name_of(shape_.model.parameters[part.tensor]));
        part.replica_kind = static_cast<std::uint8_t>(kind);
        proto::ReplicaPlace place;
        if (reconstruct_ != nullptr) place = reconstruct_->ranks[rank].places[part.replica_kind];
        const std::uint64_t count = part.count;
        part.owned_first = static_cast<std::uint32_t>(count * place.rank / place.world);
        const std::uint64_t end = count * (place.rank + 1) / place.world;
        part.owned_count = static_cast<std::uint32_t>(end) - part.owned_first;
      }
    }
  }

  void cut_windows() {
    shape_.windows.resize(shape_.trainers.size());
    for (std::size_t rank = 0; rank < shape_.trainers.size(); ++rank) {
      std::vector<std::vector<std::uint32_t>>& windows = shape_.windows[rank];
      windows.resize(reconstruct_ != nullptr ? reconstruct_->ranks[rank].windows.size() : 1);
      for (const std::uint32_t tensor : shape_.model.order) {
        const std::uint32_t part = train_parts_.part[rank * tensors() + tensor];
        if (part == kNoPart) continue;
        const std::uint32_t name = shape_.model.parameters[tensor].name;
        windows[reconstruct_ != nullptr ? reconstruct_->window_of_name[name] : 0].push_back(part);
      }
    }
  }

  [[nodiscard]] std::uint64_t weight_of(std::uint32_t tensor) const {
    const Parameter& live = shape_.model.parameters[tensor];
    const Parameter* full = full_.find(live.name);
    if (full == nullptr) return 1;
    return std::max<std::uint64_t>(1, full->shape.elements() / live.shape.elements());
  }

  void add_stream(const proto::PeerList& list) {
    const std::uint32_t train_rank = list.send - shape_.world().infer_world;
    const std::uint32_t infer_rank = list.recv % shape_.world().instance();
    const auto number = static_cast<std::uint32_t>(shape_.streams.size());
    TinyStream stream{list.send, list.recv, {}, {}, {}, {}};
    std::vector<TinyWrite>& writes = shape_.writes[list.recv];
    for (const proto::PlanOp& op : shape_.plan->ops_of(list)) {
      const proto::PlanTensor& tensor = shape_.plan->tensors[op.tensor];
      const proto::Region& region = shape_.plan->regions[op.region];
      const std::size_t from = train_rank * tensors() + tensor_of(tensor.train_name);
      const std::size_t to = infer_rank * tensors() + tensor_of(tensor.infer_name);
      const std::uint32_t part = infer_parts_.part[to];
      const auto first = static_cast<std::uint32_t>(stream.recv.size());
      append_box(stream.send, shape_.trainers[train_rank].parts[train_parts_.part[from]].first,
                 {train_parts_.shard[from]->shape, region.send_offset, region.extent});
      append_box(stream.recv, shape_.replicas[infer_rank].parts[part].first,
                 {infer_parts_.shard[to]->shape, region.recv_offset, region.extent});
      writes.push_back({op.tensor, part, number, first, static_cast<std::uint32_t>(stream.recv.size()) - first,
                        static_cast<std::uint32_t>(stream.ops.size())});
      stream.ops.push_back({train_parts_.part[from], part,
                            remap_box(*train_parts_.shard[from], *infer_parts_.shard[to], region), op.wire,
                            weight_of(tensor_of(tensor.train_name))});
      stream.weight[static_cast<std::size_t>(op.wire)] += op.elements * stream.ops.back().weight;
    }
    for (const std::uint32_t local : stream.send) ++shape_.trainers[train_rank].copies[local];
    shape_.streams.push_back(std::move(stream));
  }

  TinyShape& shape_;
  const ModelSpec& full_;
  const proto::ReconstructPlans* reconstruct_;
  std::vector<std::uint32_t> first_cell_;  // By tensor.
  PartIndex train_parts_;
  PartIndex infer_parts_;
};

// An alias whose source is not here names nothing.
void drop_idle_aliases(ModelSpec& model) {
  std::erase_if(model.aliases, [&model](const config::Alias& alias) { return model.find(alias.source) == nullptr; });
}

}  // namespace

std::shared_ptr<const config::NameTable> engine_names(const ModelSpec& model, const proto::NamePolicy& policy) {
  auto table = std::make_shared<config::NameTable>(*model.names);
  for (const Parameter& parameter : model.parameters) {
    (*table)[parameter.name] = std::string(policy.engine_name(model.name_of(parameter)));
  }
  return table;
}

Result<TinyShapePtr> make_tiny_shape(const ModelSpec& full, const TinyRequest& request,
                                     const proto::NamePolicy& policy) {
  TinyShape shape;
  shape.optimizer = request.optimizer;
  Result<ModelSpec> live = config::live_model(full, request.train, request.infer, {.all_names = request.live_all});
  if (!live) return std::move(live).error();
  shape.model = std::move(live).value();
  drop_idle_aliases(shape.model);
  Result<MetaSet> train = proto::training_metas(shape.model, request.train);
  if (!train) return std::move(train).error();
  shape.train = std::move(train).value();
  Result<MetaSet> infer = proto::inference_metas(shape.model, request.infer);
  if (!infer) return std::move(infer).error();
  shape.infer = std::move(infer).value();
  shape.infer.names = engine_names(shape.model, request.engine_names != nullptr ? *request.engine_names : policy);
  proto::PlanOptions options;
  options.world = {request.infer.tp * request.infer.pp * request.engines, request.train.world_size(), request.engines};
  auto plan = proto::build_transfer_plan(shape.train, shape.infer, options, policy);
  if (!plan) return std::move(plan).error();
  shape.plan = std::move(plan).value();
  auto shared = std::make_shared<TinyShape>(std::move(shape));
  ShapeBuilder(*shared, full, request.reconstruct).build();
  return TinyShapePtr(std::move(shared));
}

}  // namespace areal::node
