// Vectors of the packers, in both formats.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/algo/balanced_greedy.h"
#include "engine/algo/contiguous_partition.h"
#include "engine/algo/first_fit.h"
#include "engine/algo/karmarkar_karp.h"
#include "engine/algo/microbatches.h"
#include "tests/vectors/examples.h"

namespace areal::vectors {
namespace {

using algo::Groups;

std::int64_t integer_or(const Json& inputs, const char* key, std::int64_t absent) {
  return inputs.contains(key) && !inputs.at(key).is_null() ? inputs.at(key).get<std::int64_t>() : absent;
}

algo::PackLimits limits_of(const Json& inputs) {
  return {inputs.at("capacity"), integer_or(inputs, "min_groups", 1), integer_or(inputs, "n_groups_divisor", 1)};
}

algo::GroupSizes sizes_of(const Json& inputs) {
  return inputs.value("equal_size", false) ? algo::GroupSizes::kEqual : algo::GroupSizes::kAny;
}

std::vector<std::int64_t> values_in(const Json& inputs, const char* key = "values") {
  return inputs.at(key).get<std::vector<std::int64_t>>();
}

// Each index once.
std::string cover_miss(const Groups& groups, std::size_t count) {
  std::vector<int> seen(count, 0);
  for (const auto& group : groups) {
    for (const std::size_t index : group) {
      if (index >= count || ++seen[index] > 1) return fmt::format("index {} is not in exactly one group", index);
    }
  }
  return std::ranges::count(seen, 1) == static_cast<std::ptrdiff_t>(count) ? "" : "an index is in no group";
}

std::string metrics_miss(const Json& wanted, const algo::PackingMetrics& got) {
  const Json whole = {{"group_sums", got.sums},   {"n_groups", got.sums.size()}, {"max_load", got.max_load},
                      {"min_load", got.min_load}, {"spread", got.spread},        {"wasted_tokens", got.wasted}};
  for (const auto& [key, value] : whole.items()) {
    if (wanted.at(key) != value) return fmt::format("{}: wanted {}, got {}", key, wanted.at(key).dump(), value.dump());
  }
  return first_miss({value_miss("mean_load", wanted.at("mean_load"), got.mean_load, kFloat64),
                     value_miss("imbalance_ratio", wanted.at("imbalance_ratio"), got.imbalance_ratio, kFloat64),
                     value_miss("std_dev", wanted.at("std_dev"), got.deviation, kFloat64),
                     value_miss("cv", wanted.at("cv"), got.variation, kFloat64),
                     value_miss("max_load_ratio", wanted.at("max_load_ratio"), got.max_load_ratio, kFloat64),
                     value_miss("utilization", wanted.at("utilization"), got.utilization, kFloat64)})
      .detail;
}

// Groups in order, or for equal lengths that a reference may order otherwise: their sums, and that they are groups.
Outcome check_groups(const Json& vector, const Groups& groups) {
  const Json& inputs = vector.at("inputs");
  const Json& wanted = vector.at("outputs");
  const auto values = values_in(inputs);
  if (const std::string miss = cover_miss(groups, values.size()); !miss.empty()) return failed(miss);
  auto sums = algo::group_sums(values, groups);
  std::ranges::sort(sums);
  if (Json(sums) != wanted.at("group_sums_sorted"))
    return failed("other sums than " + wanted.at("group_sums_sorted").dump());
  if (inputs.value("ties_unstable", false)) return passed();
  const auto metrics = algo::packing_metrics(values, groups, inputs.at("capacity"));
  if (const std::string miss = metrics_miss(wanted.at("metrics"), metrics); !miss.empty()) return failed(miss);
  return expect_equal(wanted.at("groups"), groups);
}

Outcome check_ffd(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto groups = algo::first_fit_decreasing(values_in(inputs), limits_of(inputs));
  if (vector.contains("error")) return expect_equal(false, groups.has_value());
  if (!groups) return failed(groups.error().detail);
  return check_groups(vector, *groups);
}

Outcome check_kk(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto packed = algo::differencing_pack(values_in(inputs), limits_of(inputs), sizes_of(inputs));
  if (vector.contains("error")) return expect_equal(false, packed.has_value());
  if (!packed) return failed(packed.error().detail);
  if (vector.at("outputs").at("fell_back_to_ffd") != packed->by_first_fit) return failed("packed the other way");
  return check_groups(vector, packed->groups);
}

Outcome check_partition(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto groups = algo::differencing_partition(values_in(inputs), inputs.at("k"), sizes_of(inputs));
  if (!groups) return failed(groups.error().detail);
  return expect_equal(vector.at("outputs").at("groups"), *groups);
}

Outcome check_microbatches(const Json& vector) {
  const Json& spec = vector.at("inputs").at("mb_spec");
  if (spec.at("granularity") != 1) return failed("granularity other than 1 has no checker");
  const auto algorithm = algo::packer_from(spec.at("packing_algorithm").get<std::string>());
  if (!algorithm) return expect_equal(true, vector.contains("error"));
  algo::MicrobatchSpec ours;
  ours.packer = *algorithm;
  ours.min_count = integer_or(spec, "n_mbs", 1);
  ours.divisor = integer_or(spec, "n_mbs_divisor", 1);
  if (!spec.at("max_tokens_per_mb").is_null()) ours.max_tokens = spec.at("max_tokens_per_mb").get<std::int64_t>();
  const auto groups = algo::microbatches(values_in(vector.at("inputs"), "lens"), ours);
  if (vector.contains("error")) return expect_equal(false, groups.has_value());
  if (!groups) return failed(groups.error().detail);
  return expect_equal(vector.at("outputs").at("groups"), *groups);
}

Outcome check_packer(const Json& vector) {
  return expect_equal(vector.contains("error"),
                      !algo::packer_from(vector.at("inputs").at("algorithm").get<std::string>()).has_value());
}

Outcome check_spec(const Json& vector) {
  const std::string name = vector.at("inputs").at("packing_algorithm");
  return expect_equal(!vector.contains("error"), algo::packer_from(name).has_value());
}

Outcome check_greedy(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto groups = algo::balanced_greedy(values_in(inputs, "nums"), inputs.at("K"), algo::Seats::kEqual);
  if (vector.contains("error")) return expect_equal(false, groups.has_value());
  if (!groups) return failed(groups.error().detail);
  return expect_equal(vector.at("outputs").at("groups"), *groups);
}

Outcome check_contiguous(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto runs = algo::contiguous_partition(values_in(inputs, "arr"), inputs.at("k"), inputs.at("min_size"));
  if (vector.contains("error")) return expect_equal(false, runs.has_value());
  if (!runs) return failed(runs.error().detail);
  return expect_equal(vector.at("outputs").at("partitions"), *runs);
}

Outcome check_batches(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto batches = algo::balanced_batches(values_in(inputs, "seqlens"), inputs.at("n_seqs_per_batch"));
  if (!batches) return failed(batches.error().detail);
  return expect_equal(vector.at("outputs"),
                      {{"indices", flat(Json(batches->batches))}, {"max_diff", batches->max_difference}});
}

Outcome check_metrics(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto metrics =
      algo::packing_metrics(values_in(inputs), inputs.at("partitions").get<Groups>(), inputs.at("capacity"));
  const std::string miss = metrics_miss(vector.at("outputs"), metrics);
  return miss.empty() ? passed() : failed(miss);
}

Outcome check_example_greedy(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto values = values_in(inputs);
  const auto seats = inputs.at("allow_ragged") ? algo::Seats::kRagged : algo::Seats::kEqual;
  const auto groups = algo::balanced_greedy(values, inputs.at("K"), seats);
  if (!groups) return failed(groups.error().detail);
  return expect_equal(vector.at("expected"), {{"groups", *groups}, {"sums", algo::group_sums(values, *groups)}});
}

Outcome check_example_kk(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto values = values_in(inputs);
  const auto packed = algo::differencing_pack(values, limits_of(inputs));
  if (!packed) return failed(packed.error().detail);
  return expect_equal(vector.at("expected"), {{"algorithm", packed->by_first_fit ? "ffd" : "kk"},
                                              {"groups", packed->groups},
                                              {"sums", algo::group_sums(values, packed->groups)}});
}

Outcome check_example_ffd(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto values = values_in(inputs);
  const auto groups = algo::first_fit_decreasing(values, limits_of(inputs));
  if (!groups) return failed(groups.error().detail);
  return expect_equal(vector.at("expected"), {{"groups", *groups}, {"sums", algo::group_sums(values, *groups)}});
}

Outcome check_example_schedule(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const auto counts = values_in(inputs, "local_counts");
  const auto schedule = algo::step_schedule(counts, inputs.at("n_mbs"));
  if (!schedule) return failed(schedule.error().detail);
  Json real = Json::array();
  for (const auto& rank : schedule->slots) {
    Json& steps = real.emplace_back(Json::array());
    for (const auto& slot : rank) steps.push_back(slot.has_value());
  }
  return expect_equal(vector.at("expected"), {{"steps", schedule->steps}, {"real", real}});
}

Outcome check_example_padding(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const std::int64_t items = inputs.at("n_items");
  const auto padded = algo::padded_count(items, inputs.at("dp_size"), inputs.at("group_size"));
  if (!padded) return failed(padded.error().detail);
  return expect_equal(vector.at("expected"), {{"padded", *padded}, {"dummies", *padded - items}});
}

}  // namespace

void add_packing(std::vector<Checker>& registry) {
  registry.push_back({"seqpack", "ffd_allocate", check_ffd});
  registry.push_back({"seqpack", "kk_allocate", check_kk});
  registry.push_back({"seqpack", "_kk_partition", check_partition});
  registry.push_back({"seqpack", "allocate_balanced_mbs", check_microbatches});
  registry.push_back({"seqpack", "get_allocate_fn", check_packer});
  registry.push_back({"seqpack", "balanced_greedy_partition", check_greedy});
  registry.push_back({"seqpack", "min_abs_diff_partition", check_contiguous});
  registry.push_back({"seqpack", "reorder_to_balanced_batches", check_batches});
  registry.push_back({"seqpack", "_compute_packing_metrics", check_metrics});
  registry.push_back({"config_gates", "MicroBatchSpec", check_spec});
  registry.push_back({"spec_examples", "executor.balanced_greedy", check_example_greedy});
  registry.push_back({"spec_examples", "executor.kk_allocate", check_example_kk});
  registry.push_back({"spec_examples", "executor.ffd_allocate", check_example_ffd});
  registry.push_back({"spec_examples", "executor.microbatch_schedule", check_example_schedule});
  registry.push_back({"spec_examples", "executor.eval_padding", check_example_padding});
}

}  // namespace areal::vectors
