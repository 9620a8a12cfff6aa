// B11: the detector by share, size, kind of index and margin; many tensors; snapshots.
#include "bench/cuda/sections.h"
#include "tests/cuda/reference.cuh"

namespace areal::bench {
namespace {

using namespace delta::cuda;  // NOLINT(google-build-using-namespace): the subject of this file

constexpr std::uint64_t kFlat = 1ULL << 30;
constexpr std::uint64_t kMoeTensors = 2304;
constexpr std::uint64_t kMoeElements = 768ULL * 2048;

struct Setting {
  std::uint64_t elements = kFlat;  // Of each tensor.
  std::uint64_t tensors = 1;
  bool is_wide = false;
  const char* what = "flat";
  const char* margin = "proven";
};

class DetectBench {
 public:
  DetectBench(Report& report, const Workload& workload, const Lists& lists, const Ceilings& ceilings)
      : report_(report), workload_(workload), lists_(lists), ceilings_(ceilings), rules_(1) {}

  void run(const Setting& setting, const Share& share, const ChangeRule& rule) {
    const auto tensors = workload_.tensors(setting.elements, setting.tensors);
    const DetectTable table = must(DetectTable::make(std::span<const OptimizerTensor>(tensors)));
    rules_.put(std::span(&rule, 1));
    const ChangeOutput output = lists_.output(setting.is_wide);
    const Times times = time_of([&] { must(detect_changes(table, rules_.data(), 1, output, nullptr)); });
    const double all = static_cast<double>(setting.elements * setting.tensors);
    const double found = static_cast<double>(lists_.total(setting.tensors));
    const double rate = 12.0 * all / times.median_ms / 1e6;
    report_.add(Row("detect", setting.what)
                    .add("index", std::string(setting.is_wide ? "int64" : "int32"))
                    .add("margin", std::string(setting.margin))
                    .add("elements", setting.elements * setting.tensors)
                    .add("tensors", setting.tensors)
                    .add("share", share.wanted)
                    .add("marked", found / all)
                    .add(times)
                    .add("GBps", rate)
                    .add("of_copy", rate / ceilings_.copy)
                    .add("of_read", rate / ceilings_.read));
  }

  // Of the run before, a flat one.
  void check(const Setting& setting, const ChangeRule& rule) {
    const auto expected = tests::rule_hash(workload_.weights.data(), workload_.exp_avg.data(),
                                           workload_.exp_avg_sq.data(), setting.elements, rule);
    const std::uint64_t total = lists_.total(1);
    const auto found = setting.is_wide ? tests::list_hash(lists_.wide.data(), lists_.values.data(), 0, total)
                                       : tests::list_hash(lists_.narrow.data(), lists_.values.data(), 0, total);
    report_.check("detector finds what the rule marks", total <= lists_.values.size() && found == expected);
  }

 private:
  Report& report_;
  const Workload& workload_;
  const Lists& lists_;
  const Ceilings& ceilings_;
  DeviceArray<ChangeRule> rules_;
};

void measure_flat(DetectBench& bench, const std::vector<Share>& shares) {
  for (const Share& share : shares) {
    const ChangeRule rule = proven_rule(step_with(share.learning_rate));
    for (const Setting& setting : {Setting{}, Setting{.elements = 2 * kFlat, .is_wide = true}}) {
      bench.run(setting, share, rule);
      bench.check(setting, rule);
    }
  }
}

void measure_variants(DetectBench& bench, const Share& share) {
  const delta::ProvenStep step = step_with(share.learning_rate);
  bench.run({.is_wide = true}, share, proven_rule(step));
  bench.run({.margin = "reference"}, share, reference_rule(step));
  bench.run({.margin = "none"}, share, reference_rule(step, 0.0F));
  bench.run({.elements = kMoeTensors * kMoeElements, .is_wide = true, .what = "flat as moe"}, share, proven_rule(step));
  bench.run({.elements = kMoeElements, .tensors = kMoeTensors, .what = "moe"}, share, proven_rule(step));
}

// bf16 as it is now and as it was sent: `sent` differs in one of `one_in`.
__global__ void snapshot_kernel(const float* weights, std::uint16_t* now, std::uint16_t* sent, std::uint64_t elements,
                                std::uint64_t one_in) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    now[i] = delta::to_bf16(weights[i]);
    sent[i] = static_cast<std::uint16_t>(now[i] ^ (mix_words(5, i) % one_in == 0 ? 1U : 0U));
  }
}

void measure_snapshot(Report& report, const Workload& workload, const Lists& lists, const Ceilings& ceilings) {
  const DeviceArray<std::uint16_t> now(kFlat);
  const DeviceArray<std::uint16_t> sent(kFlat);
  snapshot_kernel<<<4096, 256>>>(workload.weights.data(), now.data(), sent.data(), kFlat, 100);
  const std::vector<SnapshotTensor> tensors{{now.data(), sent.data(), kFlat}};
  const DetectTable table = must(DetectTable::make(std::span<const SnapshotTensor>(tensors)));
  const Times times = time_of([&] { must(compare_snapshot(table, lists.output(false), nullptr)); });
  const double rate = 4.0 * static_cast<double>(kFlat) / times.median_ms / 1e6;
  report.add(Row("snapshot", "flat")
                 .add("elements", kFlat)
                 .add("marked", static_cast<double>(lists.total(1)) / static_cast<double>(kFlat))
                 .add(times)
                 .add("GBps", rate)
                 .add("of_copy", rate / ceilings.copy));
}

}  // namespace

void measure_detect(Report& report, const Workload& workload, const Lists& lists, const std::vector<Share>& shares,
                    const Ceilings& ceilings) {
  DetectBench bench(report, workload, lists, ceilings);
  measure_flat(bench, shares);
  for (const Share& share : shares) {
    if (share.wanted == 0.01) measure_variants(bench, share);
  }
  measure_snapshot(report, workload, lists, ceilings);
}

}  // namespace areal::bench
