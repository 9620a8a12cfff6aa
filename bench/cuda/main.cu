// The delta path on a device: what memory gives, the detector and CUB on the same data, patches, the sweep.
//
//   delta_gpu_bench [--json FILE] [--quick] [--only detect | --only wire]
//     --quick        the sweep with 2^26 weights instead of 2^31
//     --only detect  what memory gives, and the detector; nothing else
//     --only wire    the wire coding of what the detector finds; nothing else
//
// Says "skipped: no device" and succeeds where there is none. Exit status 1: a check in the run did not hold.
#include <cstring>
#include <string>

#include "bench/cuda/sections.h"

namespace {

using namespace areal::bench;  // NOLINT(google-build-using-namespace): the program of this folder

constexpr double kShares[] = {0.001, 0.003, 0.01, 0.03, 0.1};
constexpr std::uint64_t kMoeShard = 2304ULL * 768 * 2048;

bool is_section(const char* name) { return std::strcmp(name, "detect") == 0 || std::strcmp(name, "wire") == 0; }

void describe_device(Report& report) {
  cudaDeviceProp device{};
  int driver = 0;
  int runtime = 0;
  must(cudaGetDeviceProperties(&device, 0), "device");
  must(cudaDriverGetVersion(&driver), "device");
  must(cudaRuntimeGetVersion(&runtime), "device");
  report.add(Row("device", device.name)
                 .add("multiprocessors", static_cast<std::uint64_t>(device.multiProcessorCount))
                 .add("memory_bytes", static_cast<std::uint64_t>(device.totalGlobalMem))
                 .add("l2_bytes", static_cast<std::uint64_t>(device.l2CacheSize))
                 .add("driver", static_cast<std::uint64_t>(driver))
                 .add("runtime", static_cast<std::uint64_t>(runtime)));
}

}  // namespace

int main(int argc, char** argv) {
  std::string json;
  bool is_quick = false;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      is_quick = true;
    } else if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc && is_section(argv[i + 1])) {
      only = argv[++i];
    } else if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
      json = argv[++i];
    } else {
      std::printf(
          "unknown argument '%s'; usage: delta_gpu_bench [--json FILE] [--quick] [--only detect | --only wire]\n",
          argv[i]);
      return 64;
    }
  }
  if (!areal::tests::has_device()) {
    std::printf("skipped: no device\n");
    return 0;
  }
  Report report(json);
  describe_device(report);
  {
    const Workload workload(kMoeShard);
    const Lists lists(kMoeShard / 8, 2304);
    const bool has_detect = only != "wire";
    const Ceilings ceilings = has_detect ? measure_ceilings(report, workload) : Ceilings{};
    const std::vector<Share> shares = find_shares(workload, lists, kShares);
    for (const Share& share : shares)
      report.add(Row("share", "marked").add("share", share.wanted).add("lr", share.learning_rate));
    if (has_detect) measure_detect(report, workload, lists, shares, ceilings);
    if (only.empty()) measure_cub(report, workload, lists, shares, ceilings);
    if (only.empty()) measure_apply(report, workload, lists, shares, ceilings);
    if (only != "detect") measure_wire(report, workload, lists, shares);
  }
  if (only.empty()) sweep(report, is_quick ? 1ULL << 26 : 1ULL << 31);
  return report.failed() ? 1 : 0;
}
