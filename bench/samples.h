// Times and their medians, for benchmarks that compare in one run.
#pragma once
#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

namespace areal::bench {

template <class Work>
double seconds_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The time that this program's threads had a core, however busy the machine is.
template <class Work>
double core_seconds_of(const Work& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// REQUIRES: there is a sample.
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};

inline Spread spread_of(std::vector<double> samples) {
  std::ranges::stable_sort(samples);
  return {samples[samples.size() / 2], samples.front(), samples.back()};
}

// Of quotients of neighbours in time, so that a busy moment slows both.
inline Spread spread_of_ratios(const std::vector<double>& upper, const std::vector<double>& lower) {
  std::vector<double> ratios;
  ratios.reserve(upper.size());
  for (std::size_t i = 0; i < upper.size(); ++i) ratios.push_back(upper[i] / lower[i]);
  return spread_of(ratios);
}

}  // namespace areal::bench
