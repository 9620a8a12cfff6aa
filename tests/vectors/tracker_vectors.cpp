// Worked examples of the statistics tracker.
#include <nlohmann/json.hpp>
#include <string>

#include "engine/algo/stats_tracker.h"
#include "tests/vectors/examples.h"
#include "tests/vectors/registry.h"
#include "tests/vectors/tensors.h"

namespace areal::vectors {
namespace {

constexpr std::string_view kOwner = "actor";

// What all ranks export together, as an object.
Json exported(const std::vector<algo::StatRecords>& ranks) {
  std::vector<algo::RankKeys> keys;
  for (const algo::StatRecords& records : ranks) keys.push_back({algo::stat_keys(records), false});
  const auto merged = algo::merge_stat_keys(keys);
  Json object = Json::object();
  for (const auto& [key, value] : algo::reduce_stats(merged.value(), ranks)) object[key] = value;
  return object;
}

// The scopes before the last part of a key.
void enter_scopes(algo::StatsTracker& tracker, std::string& key) {
  for (auto slash = key.find('/'); slash != std::string::npos; slash = key.find('/')) {
    tracker.enter(key.substr(0, slash));
    key.erase(0, slash + 1);
  }
}

Outcome check_aggregate(const Json& vector) {
  const Json& in = vector.at("inputs");
  if (in.at("reduce_type") != "AVG_MIN_MAX") return failed("no example has another reduction");
  std::string key = in.at("key");
  algo::StatsTracker tracker(kOwner);
  enter_scopes(tracker, key);
  for (std::size_t at = 0; at < in.at("values").size(); ++at) {
    const Status masked = tracker.denominator("d", mask_of(in.at("denominators")[at]));
    const Status recorded = tracker.stat(key, "d", floats_of(in.at("values")[at]));
    if (!masked || !recorded) return failed("refused");
  }
  Json got = exported({tracker.take(kOwner).value()});
  // The example leaves its denominator out.
  for (auto entry = got.begin(); entry != got.end();) {
    entry = entry.key() == "d" || entry.key().ends_with("/d") ? got.erase(entry) : std::next(entry);
  }
  return expect_equal(vector.at("expected").at("export"), got);
}

Outcome check_scalar(const Json& vector) {
  const Json& in = vector.at("inputs");
  const std::string key = in.at("key");
  std::vector<algo::StatRecords> ranks;
  bool recorded = false;
  for (const Json& values : in.at("per_rank_values")) {
    algo::StatsTracker tracker(kOwner);
    for (const Json& value : values) recorded = tracker.scalar(key, value).has_value();
    ranks.push_back(tracker.take(kOwner).value());
  }
  Json got = exported(ranks);
  if (!recorded) {
    // No rank knows the key: it is asked for by name.
    for (const auto& [name, value] :
         algo::reduce_stats(std::vector<algo::StatKey>{{.key = key, .denominator = {}}}, ranks)) {
      got[name] = value;
    }
  }
  return expect_equal(vector.at("expected").at("export"), got);
}

Outcome check_workers(const Json& vector) {
  std::vector<algo::Stats> workers;
  for (const Json& worker : vector.at("inputs").at("workers")) {
    algo::Stats& stats = workers.emplace_back();
    for (const auto& [key, value] : worker.items()) stats.emplace_back(key, value.get<double>());
  }
  const algo::Stats got = algo::average_workers(workers);
  const Json& wanted = vector.at("expected").at("export");
  if (got.size() != wanted.size()) return failed("another number of keys");
  std::vector<std::string> misses;
  for (const auto& [key, value] : got) misses.push_back(value_miss(key, wanted.at(key), value, tolerance_of(vector)));
  return first_miss(misses);
}

}  // namespace

void add_tracker(std::vector<Checker>& registry) {
  registry.push_back({"spec_examples", "tracker.aggregate", check_aggregate});
  registry.push_back({"spec_examples", "tracker.scalar", check_scalar});
  registry.push_back({"spec_examples", "tracker.controller_average", check_workers});
}

}  // namespace areal::vectors
