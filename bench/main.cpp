// sim_bench: the speed of the scheduler and of what every simulated event pays for.
//
// kUsage names its arguments; others go to Google Benchmark, which times the parts. Exit: 0; 1 an order that differs;
// 64 wrong arguments.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string_view>

#include "bench/core_bench.h"
#include "bench/scheduler/report.h"

namespace {

constexpr char kUsage[] =
    "sim_bench: the speed of the scheduler and of what every simulated event pays for\n"
    "  sim_bench                            the digest, the scheduler's table, the parts; under two minutes\n"
    "  sim_bench --digest                   only the digest of the parts' results\n"
    "  sim_bench --scheduler                only the scheduler's table\n"
    "  sim_bench --quick                    the table of few events, to check the orders\n"
    "  sim_bench --one CASE [--reference]   one case once, for scripts: phold-1024x1, hold-64, churn-40, ...\n"
    "Other arguments go to Google Benchmark, which times the parts: --benchmark_filter=REGEX, ...\n";

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--help") return std::printf("%s", kUsage), 0;
  if (first == "--scheduler" || first == "--quick") return areal::bench::report_scheduler(first == "--quick") ? 0 : 1;
  if (first == "--one") {
    const bool reference = argc == 4 && std::string_view(argv[3]) == "--reference";
    return argc > 2 && (argc == 3 || reference) && areal::bench::report_one(argv[2], reference) ? 0 : 64;
  }
  std::printf("digest %s\n", areal::to_hex(areal::bench::core_digest()).c_str());
  std::fflush(stdout);
  if (first == "--digest") return 0;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 64;
  if (first.empty() && !areal::bench::report_scheduler(false)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
