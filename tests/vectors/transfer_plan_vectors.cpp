// Vectors of transfer plans: global order, plans of each rank, refusals, default cut dimensions, schedule of a delta.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/delta/schedule.h"
#include "engine/proto/sharding.h"
#include "engine/proto/transfer_plan.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

using namespace proto;

Shape shape_of(const Json& extents) {
  Shape shape;
  for (const Json& extent : extents) shape.extent.at(shape.rank++) = extent;
  return shape;
}

MetaSet metas_of(const Json& entries) {
  NameTable names;
  for (const Json& entry : entries) names.push_back(entry.at("name"));
  std::ranges::stable_sort(names);
  MetaSet metas;
  for (const Json& entry : entries) {
    ParameterMeta parameter;
    parameter.name = static_cast<std::uint32_t>(std::ranges::lower_bound(names, entry.at("name").get<std::string>()) -
                                                names.begin());
    parameter.shape = shape_of(entry.at("global_shape"));
    parameter.first_replica = static_cast<std::uint32_t>(metas.replicas.size());
    for (const Json& replica : entry.at("replicas")) {
      metas.replicas.push_back(
          {static_cast<std::uint32_t>(metas.shards.size()), static_cast<std::uint32_t>(replica.size())});
      for (const Json& shard : replica) {
        ShardMeta meta;
        meta.global_rank = shard.at("rank");
        meta.shape = shape_of(shard.at("shape"));
        for (const Json& offset : shard.at("offset")) meta.offset.at(meta.offset_rank++) = offset;
        metas.shards.push_back(meta);
      }
      ++parameter.replica_count;
    }
    metas.parameters.push_back(parameter);
  }
  metas.names = std::make_shared<const NameTable>(std::move(names));
  return metas;
}

Json offsets_json(const Offsets& offsets, std::uint8_t rank) {
  Json json = Json::array();
  for (std::size_t i = 0; i < rank; ++i) json.push_back(offsets[i]);
  return json;
}

Json op_json(const PlanOp& op, const std::vector<Region>& regions, const std::string& name) {
  const Region& region = regions[op.region];
  const std::uint8_t rank = region.extent.rank;
  return {name,
          op.send,
          op.recv,
          offsets_json(region.send_offset, rank),
          offsets_json(region.recv_offset, rank),
          offsets_json(region.extent.extent, rank)};
}

Json local_json(const TransferPlan& plan) {
  Json local = Json::object();
  for (std::uint32_t rank = 0; rank < plan.world.world(); ++rank) {
    const RankPlan mine = plan.rank(rank);
    Json peers = Json::array();
    for (std::size_t i = 0; i < mine.peer_count(); ++i) {
      Json ops = Json::array();
      for (const PlanOp& op : mine.ops(i)) {
        ops.push_back(op_json(op, plan.regions, plan.name_of(plan.tensors[op.tensor])));
      }
      peers.push_back({mine.peer(i), ops});
    }
    local[std::to_string(rank)] = peers;
  }
  return local;
}

Outcome check_plan(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const MetaSet infer = metas_of(inputs.at("infer_meta"));
  const MetaSet train = metas_of(inputs.at("train_meta"));
  PlanOptions options;
  options.world = {inputs.at("infer_world_size"), inputs.at("train_world_size"), inputs.at("num_infer_engines")};
  options.strict_names = inputs.at("strict_param_key_match");
  const RenamePolicy same_names;
  const Result<OperationList> list = mapping_operations(train, infer, options, same_names);
  if (vector.contains("error")) {
    if (list) return failed("accepted, but wanted " + vector.at("error").dump());
    return expect_equal(vector.at("error").at("message"), list.error().detail);
  }
  if (!list) return failed("refused: " + list.error().detail);
  Json ops = Json::array();
  for (const PlanOp& op : list->ops) {
    ops.push_back(op_json(op, list->regions, (*infer.names)[list->tensors[op.tensor].infer_name]));
  }
  const auto plan = build_transfer_plan(train, infer, options, same_names);
  if (!plan) return failed("refused: " + plan.error().detail);
  return expect_equal(vector.at("outputs"), {{"ops", ops}, {"local", local_json(**plan)}});
}

Outcome check_cut_dimension(const Json& vector) {
  Json dims = Json::array();
  for (const Json& name : vector.at("inputs").at("names")) {
    dims.push_back(default_cut_dimension(name.get<std::string>()));
  }
  return expect_equal(vector.at("outputs"), {{"dims", dims}});
}

// A rank's meetings by round: the peers of each of its phases, and what it does in phase 0 and in phase 1.
Result<Json> rounds_of(std::uint32_t world, std::uint32_t rank) {
  const Result<std::vector<delta::Meeting>> meetings = delta::recursive_schedule(world, rank);
  if (!meetings) return meetings.error();
  Json rounds = Json::array();
  for (const delta::Meeting& meeting : *meetings) {
    if (meeting.round == rounds.size()) rounds.push_back({{"peers", {Json::array(), Json::array()}}, {"order", {}}});
    Json& round = rounds.back();
    round["peers"].at(meeting.phase).push_back(meeting.peer);
    if (round["order"].size() == meeting.phase) round["order"].push_back(meeting.sends ? "send" : "recv");
  }
  for (Json& round : rounds) {
    if (round["peers"][0] != round["peers"][1]) return Error{Errc::kInvalid, "phases of other peers"};
    round["peers"] = Json(round["peers"][0]);
  }
  return rounds;
}

Outcome check_schedule(const Json& vector) {
  const std::uint32_t world = vector.at("inputs").at("world_size");
  Json by_rank = Json::array();
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    const Result<Json> rounds = rounds_of(world, rank);
    if (!rounds) return failed("refused: " + rounds.error().detail);
    by_rank.push_back(*rounds);
  }
  return expect_equal(vector.at("outputs"), {{"rounds_by_rank", by_rank}});
}

}  // namespace

void add_transfer_plan(std::vector<Checker>& registry) {
  registry.push_back({"transfer_plan", "TransferPlanBuilder", check_plan});
  registry.push_back({"transfer_plan", "get_default_sharding_dim", check_cut_dimension});
  registry.push_back({"transfer_plan", "recursive_schedule", check_schedule});
}

}  // namespace areal::vectors
