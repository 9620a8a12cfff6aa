// What it costs one rank to know what it sends or receives, as the world grows.
//
//   plan_bench              parts of single ranks in worlds of 16 to 20,000 ranks, beside the whole plan where it fits
//   plan_bench --all N      all parts of a world of N ranks, one after the other; the two sides' sums must be equal
//   plan_bench --quick      a little of both; exit 1 if a part is not the whole plan's or is not proven
#include <sys/resource.h>

#include <cstdio>

#include "bench/arguments.h"
#include "bench/samples.h"
#include "engine/base/fields.h"
#include "engine/proto/coverage.h"
#include "engine/proto/layout_grids.h"
#include "engine/proto/plan_digest.h"
#include "engine/proto/rank_plan.h"

namespace areal::bench {
namespace {

using namespace proto;

struct World {
  GridSet train;
  GridSet infer;
  PlanWorld sizes;
};

constexpr std::uint32_t kShards = 40;  // Of one copy of a fully sharded training side; 40 leaves uneven rows.

// Half of the ranks train, the other half are engines of four tensor ranks.
World make_world(std::uint32_t ranks, bool is_sharded) {
  const config::ModelSpec model = config::model_by_name("qwen3-30b-a3b").value();
  const std::uint32_t half = ranks / 2;
  World world{is_sharded ? fsdp_grids(model, {.shards = kShards, .copies = half / kShards}).value()
                         : training_grids(model, {.dp = half / 4, .tp = 4, .ep = 8}).value(),
              inference_grids(model, {.tp = 4}).value(),
              {half, half, half / 4}};
  return world;
}

std::shared_ptr<const TransferPlan> part_of(const World& world, std::uint32_t rank, ReplicaRule rule) {
  const PlanOptions options{.world = world.sizes, .only_rank = rank, .replicas = rule};
  return build_rank_plan(world.train, world.infer, options, RenamePolicy{}).value();
}

bool is_proven(const World& world, const TransferPlan& plan) {
  const auto fault = find_coverage_fault(plan, ShardBook(world.train), ShardBook(world.infer));
  if (fault) std::printf("  FAILED: %s\n", describe(*fault).c_str());
  return !fault.has_value();
}

void print_row(const char* name, const std::vector<double>& seconds, std::uint64_t operations) {
  const Spread time = spread_of(seconds);
  std::printf("    %-28s %9.1f ms (%8.1f to %8.1f)   at most %llu operations\n", name, 1e3 * time.median,
              1e3 * time.least, 1e3 * time.most, static_cast<unsigned long long>(operations));
}

// Parts of ranks that are spread evenly over one side.
bool measure_side(const World& world, ReplicaRule rule, bool trains, std::uint32_t samples) {
  std::vector<double> seconds;
  std::uint64_t operations = 0;
  bool is_good = true;
  for (std::uint32_t i = 0; i < samples; ++i) {
    const std::uint32_t half = world.sizes.infer_world;
    const std::uint32_t rank = (trains ? half : 0) + static_cast<std::uint32_t>(std::uint64_t{half} * i / samples);
    std::shared_ptr<const TransferPlan> part;
    seconds.push_back(seconds_of([&] { part = part_of(world, rank, rule); }));
    operations = std::max<std::uint64_t>(operations, part->ops.size());
    if (i == 0) is_good = is_proven(world, *part);
  }
  const bool balanced = rule == ReplicaRule::kFewestBytes;
  print_row(trains ? (balanced ? "a sender, fewest bytes" : "a sender, round robin")
                   : (balanced ? "a receiver, fewest bytes" : "a receiver, round robin"),
            seconds, operations);
  return is_good;
}

bool measure_parts(std::uint32_t ranks, bool is_sharded, std::uint32_t samples) {
  World world;
  const double made = seconds_of([&] { world = make_world(ranks, is_sharded); });
  std::printf("  %u ranks, training side %s (layouts in %.1f ms)\n", ranks, is_sharded ? "fully sharded" : "tp 4, ep 8",
              1e3 * made);
  bool is_good = true;
  for (const ReplicaRule rule : {ReplicaRule::kRoundRobin, ReplicaRule::kFewestBytes}) {
    for (const bool trains : {true, false}) is_good = measure_side(world, rule, trains, samples) && is_good;
  }
  return is_good;
}

double busiest_share(const TransferPlan& plan) {
  std::uint64_t most = 0;
  for (std::uint32_t rank = plan.world.infer_world; rank < plan.world.world(); ++rank) {
    most = std::max(most, plan.rank(rank).stats().bytes);
  }
  return static_cast<double>(most) * plan.world.train_world / static_cast<double>(plan.stats().bytes);
}

// More copies than engines: who sends is a choice then.
bool measure_balance(std::uint32_t engines) {
  const config::ModelSpec model = config::model_by_name("qwen3-30b-a3b").value();
  const World world{training_grids(model, {.dp = 8, .tp = 4, .ep = 8}).value(),
                    inference_grids(model, {.tp = 4}).value(),
                    {engines * 4, 32, engines}};
  bool is_good = true;
  std::printf("  32 training ranks (dp 8, tp 4, ep 8), %u engines of 4: busiest sender, times the mean:", engines);
  for (const ReplicaRule rule : {ReplicaRule::kRoundRobin, ReplicaRule::kFewestBytes}) {
    const PlanOptions options{.world = world.sizes, .replicas = rule};
    const auto plan =
        build_transfer_plan(metas_of(world.train), metas_of(world.infer), options, RenamePolicy{}).value();
    std::printf("  %s %.3f", std::string(areal::to_text(rule)).c_str(), busiest_share(*plan));
    is_good = is_proven(world, *plan) && is_good;
  }
  std::printf("\n");
  return is_good;
}

// The whole plan from lists, as small worlds build it.
bool measure_whole(std::uint32_t ranks, std::uint32_t samples) {
  const World world = make_world(ranks, false);
  bool is_good = true;
  for (const ReplicaRule rule : {ReplicaRule::kRoundRobin, ReplicaRule::kFewestBytes}) {
    std::vector<double> seconds;
    std::shared_ptr<const TransferPlan> plan;
    for (std::uint32_t i = 0; i < samples; ++i) {
      seconds.push_back(seconds_of([&] {
        const PlanOptions options{.world = world.sizes, .replicas = rule};
        plan = build_transfer_plan(metas_of(world.train), metas_of(world.infer), options, RenamePolicy{}).value();
      }));
    }
    print_row(rule == ReplicaRule::kRoundRobin ? "whole plan, round robin" : "whole plan, fewest bytes", seconds,
              plan->ops.size());
    is_good = is_proven(world, *plan) && is_good;
  }
  return is_good;
}

// Every rank's part, none of which knows the others: what senders add up to must be what receivers do.
bool sum_all(std::uint32_t ranks, ReplicaRule rule) {
  const World world = make_world(ranks, false);
  const ShardBook train(world.train);
  const ShardBook infer(world.infer);
  DigestSum sent;
  DigestSum received;
  std::uint64_t operations = 0;
  bool is_good = true;
  const double seconds = seconds_of([&] {
    for (std::uint32_t rank = 0; rank < world.sizes.world(); ++rank) {
      const auto part = part_of(world, rank, rule);
      const RankPlan mine = part->rank(rank);
      const bool trains = world.sizes.is_training(rank);
      (trains ? sent : received).add(digest_share(mine).total);
      if (trains) operations += part->ops.size();
      if (!trains && find_coverage_fault(*part, train, infer).has_value()) is_good = false;
    }
  });
  const Digest128 ours = digest_of_shares(world.sizes, sent);
  is_good = is_good && ours == digest_of_shares(world.sizes, received);
  std::printf("  all of %u ranks, %s: %llu operations, digest %s, every receiver proven: %s; %.1f s in one process\n",
              ranks, rule == ReplicaRule::kRoundRobin ? "round robin" : "fewest bytes",
              static_cast<unsigned long long>(operations), to_hex(ours).c_str(), is_good ? "yes" : "NO", seconds);
  return is_good;
}

void print_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("  largest memory so far: %.0f MB\n", static_cast<double>(usage.ru_maxrss) / 1024);
}

int run(int count, char** arguments) {
  Arguments given("plan_bench", "What one rank's part of a transfer plan costs in large worlds.");
  given.flag("quick", "little of everything, to see that it runs");
  given.number("all", "sums the parts of all ranks of a world of N, a multiple of 16", {.least = 16, .most = 0xFFFF});
  if (const auto status = given.parse(count, arguments)) return *status;
  bool is_good = true;
  if (given.has("all")) {
    const auto ranks = static_cast<std::uint32_t>(given["all"]);
    if (ranks % 16 != 0) {
      std::fprintf(stderr, "plan_bench: --all must be a multiple of 16\n");
      return 64;
    }
    is_good = sum_all(ranks, ReplicaRule::kRoundRobin);
    // Every rank looks at the bytes of all: that many ranks in one process take hours.
    if (ranks <= 2048) is_good = sum_all(ranks, ReplicaRule::kFewestBytes) && is_good;
  } else if (given.has("quick")) {
    is_good = measure_parts(10'000, false, 1) && measure_balance(2) && sum_all(16, ReplicaRule::kFewestBytes);
  } else {
    for (const std::uint32_t ranks : {16U, 1'024U, 10'000U, 20'000U}) {
      is_good = measure_parts(ranks, false, 15) && is_good;
      print_memory();
    }
    is_good = measure_parts(10'000, true, 15) && is_good;
    for (const std::uint32_t engines : {2U, 3U, 8U}) is_good = measure_balance(engines) && is_good;
    for (const std::uint32_t ranks : {16U, 64U, 256U}) {
      std::printf("  %u ranks\n", ranks);
      is_good = measure_whole(ranks, 5) && is_good;
    }
    print_memory();
  }
  return is_good ? 0 : 1;
}

}  // namespace
}  // namespace areal::bench

int main(int count, char** arguments) { return areal::bench::run(count, arguments); }
