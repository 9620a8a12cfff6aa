#include "bench/algo_advantages.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/samples.h"
#include "engine/algo/first_fit.h"
#include "engine/algo/gae.h"
#include "engine/algo/karmarkar_karp.h"
#include "engine/base/rng.h"

namespace areal::bench {
namespace {

// Turns of 64 tokens, of which 48 are trained.
struct Arrays {
  Arrays(std::size_t count, std::size_t width)
      : rows(algo::Rows::padded(count, width)), bootstrap(count, 0.0F), decay(algo::decays(1, 0.95, count)) {
    Rng rng(1);
    for (std::size_t at = 0; at < rows.elements(); ++at) {
      const std::uint64_t word = rng.draw_u64();
      rewards.push_back(static_cast<float>(word & 0xFFFF) * 0x1p-16F);
      values.push_back(static_cast<float>(word >> 16 & 0xFFFF) * 0x1p-16F);
      trained.push_back(at % 64 < 48 ? 1 : 0);
      turn_ids.push_back(static_cast<std::int32_t>(at % width / 64));
    }
    advantages.resize(rows.elements());
    returns.resize(rows.elements());
  }
  [[nodiscard]] algo::GaeInput input() const { return {rows, rewards, values, trained, bootstrap, decay, 1}; }

  algo::Rows rows;
  std::vector<float> rewards, values, bootstrap, decay, advantages, returns;
  std::vector<std::uint8_t> trained;
  std::vector<std::int32_t> turn_ids;
};

// The same five arrays, read and written once, without a recursion.
void stream(Arrays& arrays) {
  for (std::size_t at = 0; at < arrays.advantages.size(); ++at) {
    arrays.advantages[at] = arrays.rewards[at] + static_cast<float>(arrays.trained[at]);
    arrays.returns[at] = arrays.rewards[at] + arrays.values[at];
  }
}

std::vector<double> torch_seconds(std::size_t rows, std::size_t width) {
  const std::string command =
      fmt::format("/usr/bin/python3 {}/bench/peers/gae_torch.py {} {} 3", AREAL_SOURCE_DIR, rows, width);
  std::vector<double> seconds;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return seconds;
  char line[64];
  while (std::fgets(line, sizeof line, pipe) != nullptr) seconds.push_back(std::atof(line));
  ::pclose(pipe);
  return seconds;
}

void print(const char* what, const Spread& spread, double scale, const char* unit) {
  fmt::print("  {:<44} {:9.3f} ({:.3f} to {:.3f}) {}\n", what, spread.median * scale, spread.least * scale,
             spread.most * scale, unit);
}

void measure_gae(std::size_t rows, std::size_t width, const AdvantageWishes& wishes) {
  Arrays arrays(rows, width);
  const int times = wishes.is_quick ? 1 : 9;
  std::vector<double> token, turn, memory, torch;
  for (int time = 0; time < times; ++time) {
    memory.push_back(seconds_of([&] { stream(arrays); }));
    token.push_back(seconds_of([&] { algo::gae_by_token(arrays.input(), {arrays.advantages, arrays.returns}); }));
    turn.push_back(seconds_of([&] {
      const auto status = algo::gae_by_turn(arrays.input(), arrays.turn_ids, {arrays.advantages, arrays.returns});
      AREAL_CHECK(status.has_value());
    }));
    if (!wishes.has_peers) continue;
    const std::vector<double> seconds = torch_seconds(rows, width);
    if (!seconds.empty()) torch.push_back(spread_of(seconds).median);
  }
  const double per_element = 1e9 / static_cast<double>(arrays.rows.elements());
  fmt::print("{} rows of {}\n", rows, width);
  print("advantages by token", spread_of(token), per_element, "ns an element");
  print("advantages by turn", spread_of(turn), per_element, "ns an element");
  print("the same arrays without a recursion", spread_of(memory), per_element, "ns an element");
  print("share of that bandwidth, by token", spread_of_ratios(memory, token), 100, "%");
  if (torch.size() == token.size())
    print("torch eager takes, by token", spread_of_ratios(torch, token), 1, "times as long");
}

void measure_packing(std::size_t count, const AdvantageWishes& wishes) {
  Rng rng(2);
  std::vector<std::int64_t> lengths;
  for (std::size_t at = 0; at < count; ++at) lengths.push_back(static_cast<std::int64_t>(rng.draw_below(4096)) + 1);
  std::vector<double> first_fit, differencing;
  double utilization = 0;
  for (int time = 0; time < (wishes.is_quick ? 1 : 9); ++time) {
    first_fit.push_back(seconds_of([&] {
      const auto groups = algo::first_fit_decreasing(lengths, {16'384, 1, 8});
      utilization = algo::packing_metrics(lengths, *groups, 16'384).utilization;
    }));
    differencing.push_back(seconds_of([&] { AREAL_CHECK(algo::differencing_partition(lengths, 64).has_value()); }));
  }
  fmt::print("{} sequences\n", count);
  print("first fit decreasing", spread_of(first_fit), 1e3, "ms");
  print("differencing into 64 groups", spread_of(differencing), 1e3, "ms");
  fmt::print("  first fit uses {:.2f} % of the room\n", utilization * 100);
}

}  // namespace

void measure_advantages(const AdvantageWishes& wishes) {
  if (wishes.is_quick) {
    measure_gae(9, 100, wishes);
    measure_packing(1'000, wishes);
    return;
  }
  measure_gae(64, 512, wishes);
  measure_gae(256, 4'096, wishes);
  measure_gae(512, 8'192, wishes);
  measure_packing(100'000, wishes);
}

}  // namespace areal::bench
