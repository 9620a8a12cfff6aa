#include "engine/proto/reconstruct_plan.h"

#include <algorithm>
#include <utility>

#include "engine/base/digest.h"
#include "engine/base/rng.h"

namespace areal::proto {
namespace {

constexpr std::uint64_t kCorrectionBytes = 4;  // fp32.

// Ranks with equal coordinates in everything but the copy hold the same shards.
std::array<std::uint32_t, 3> place_of(const RankAxes& axes, ReplicaKind kind) {
  if (kind == ReplicaKind::kDense) return {axes.pp_rank, axes.tp_rank, 0};
  return {axes.pp_rank, axes.ep_rank, axes.ep_tp_rank};
}

void place_ranks(const MetaSet& train, ReconstructPlans& plans) {
  std::uint32_t groups = 0;
  for (const ReplicaKind kind : {ReplicaKind::kDense, ReplicaKind::kExpert}) {
    const auto index = static_cast<std::size_t>(kind);
    std::vector<std::pair<std::array<std::uint32_t, 3>, std::vector<std::uint32_t>>> members;
    for (std::uint32_t rank = 0; rank < train.ranks.size(); ++rank) {
      const auto key = place_of(train.ranks[rank], kind);
      auto found = std::ranges::find(members, key, &decltype(members)::value_type::first);
      if (found == members.end()) found = members.insert(members.end(), {key, {}});
      found->second.push_back(rank);
    }
    for (const auto& [key, ranks] : members) {
      ++groups;
      for (std::uint32_t i = 0; i < ranks.size(); ++i) {
        plans.ranks[ranks[i]].places[index] = {groups, i, static_cast<std::uint32_t>(ranks.size())};
      }
    }
  }
}

// One set of copies for everything: there is one canonical group.
bool is_one_set(const ReconstructPlans& plans) {
  const auto same = [&](std::size_t a, std::size_t b, std::size_t kind) {
    return plans.ranks[a].places[kind].group == plans.ranks[b].places[kind].group;
  };
  for (std::size_t a = 0; a < plans.ranks.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (same(a, b, 0) != same(a, b, 1)) return false;
    }
  }
  return true;
}

// Elements that each rank holds of one parameter; 0 if it holds none.
std::vector<std::uint64_t> held_elements(const MetaSet& train, const ParameterMeta& parameter) {
  std::vector<std::uint64_t> held(train.ranks.size(), 0);
  for (const ReplicaMeta& replica : train.replicas_of(parameter)) {
    for (const ShardMeta& shard : train.shards_of(replica)) held[shard.global_rank] += shard.shape.elements();
  }
  return held;
}

// The window is full on a rank that holds something already; then a new one begins on all.
bool overflows(const std::vector<std::uint64_t>& filled, const std::vector<std::uint64_t>& held,
               std::uint64_t window_bytes) {
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    if (filled[rank] > 0 && held[rank] > 0 && filled[rank] + held[rank] * kCorrectionBytes > window_bytes) return true;
  }
  return false;
}

}  // namespace

ReconstructPlans reconstruct_plans(const config::ModelSpec& model, const MetaSet& train, std::uint64_t window_bytes) {
  ReconstructPlans plans;
  plans.ranks.resize(train.ranks.size());
  plans.window_of_name.assign(model.names->size(), 0);
  place_ranks(train, plans);
  const bool one_set = is_one_set(plans);
  if (one_set) {
    for (ReconstructPlan& plan : plans.ranks) plan.places[1] = plan.places[0];
  }
  for (ReconstructPlan& plan : plans.ranks) plan.windows.emplace_back();
  std::vector<std::uint64_t> filled(plans.ranks.size(), 0);  // Bytes of the open window, by rank.
  std::uint32_t window = 0;
  for (const std::uint32_t index : model.order) {
    const config::Parameter& parameter = model.parameters[index];
    const std::vector<std::uint64_t> held = held_elements(train, train.parameters[index]);
    if (overflows(filled, held, window_bytes)) {
      for (ReconstructPlan& plan : plans.ranks) plan.windows.emplace_back();
      ++window;
      std::ranges::fill(filled, 0);
    }
    for (std::size_t rank = 0; rank < held.size(); ++rank) filled[rank] += held[rank] * kCorrectionBytes;
    plans.window_of_name[parameter.name] = window;
    const std::size_t kind = one_set ? 0 : static_cast<std::size_t>(replica_kind(model.name_of(parameter)));
    for (std::size_t rank = 0; rank < held.size(); ++rank) {
      if (held[rank] == 0) continue;
      ReconstructPlan& plan = plans.ranks[rank];
      ++plan.parameters;
      plan.elements += held[rank];
      WindowShare& share = plan.windows.back().shares[kind];
      ++share.parameters;
      share.bytes += held[rank] * kCorrectionBytes;
      // Experts of one group are not those of another: their number and sizes must fit, within a group names as well.
      share.hash = mix_words(share.hash, mix_words(parameter.name, held[rank]));
    }
  }
  return plans;
}

}  // namespace areal::proto
