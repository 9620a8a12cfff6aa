// The wire coding: bytes for each change, and how fast it is coded and decoded, at every share of changes.
#include <cmath>

#include "bench/cuda/sections.h"
#include "engine/delta/bf16.h"
#include "engine/delta/cuda/wire.h"

namespace areal::bench {
namespace {

using namespace delta::cuda;  // NOLINT(google-build-using-namespace): the subject of this file
namespace wire = delta::wire;

constexpr std::uint64_t kFlat = 1ULL << 30;

struct Undo {
  float step_size = 0;
  float bc2 = 0;
  float epsilon = 0;
};

// What the receiver holds: the weights before the step, as far as fp32 tells.
__global__ void base_kernel(const float* weights, const float* exp_avg, const float* exp_avg_sq, Undo undo,
                            std::uint16_t* base, std::uint64_t elements) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    const float denominator = std::sqrt(exp_avg_sq[i] / undo.bc2) + undo.epsilon;
    base[i] = delta::to_bf16(weights[i] + (undo.step_size * exp_avg[i]) / denominator);
  }
}

template <class Number>
__global__ void differs_kernel(const Number* a, const Number* b, std::uint64_t count, unsigned long long* wrong) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    if (a[i] != b[i]) atomicAdd(wrong, 1ULL);
  }
}

class WireBench {
 public:
  WireBench(Report& report, const Workload& workload, const Lists& lists)
      : report_(report), workload_(workload), lists_(lists), base_(kFlat), tensors_(1), outcome_(1), wrong_(1) {
    const WireTensor tensor{base_.data(), kFlat};
    tensors_.put(std::span(&tensor, 1));
  }

  void run(const Share& share) {
    const auto tensors = workload_.tensors(kFlat);
    const DetectTable table = must(DetectTable::make(std::span<const OptimizerTensor>(tensors)));
    const delta::ProvenStep step = step_with(share.learning_rate);
    const ChangeRule rule = proven_rule(step);
    const DeviceArray<ChangeRule> rules(std::span(&rule, 1));
    must(detect_changes(table, rules.data(), 1, lists_.output(false), nullptr));
    const std::uint64_t count = lists_.total(1);
    const Undo undo{static_cast<float>(step.learning_rate / step.bc1), static_cast<float>(step.bc2),
                    static_cast<float>(step.epsilon)};
    base_kernel<<<4096, 256>>>(workload_.weights.data(), workload_.exp_avg.data(), workload_.exp_avg_sq.data(), undo,
                               base_.data(), kFlat);
    code("steps", wire::Form::kSteps, share, count);
    code("plain", wire::Form::kPlain, share, count);
  }

 private:
  void code(const char* form_name, wire::Form form, const Share& share, std::uint64_t count) {
    const std::uint64_t room = wire_most_units(1, count, kFlat, 2);
    const DeviceArray<std::uint64_t> units(room);
    const DeviceArray<unsigned char> workspace(wire_encode_workspace(1, count));
    WireEncodeInput input;
    input.indices32 = lists_.narrow.data();
    input.values16 = lists_.values.data();
    input.offsets = lists_.offsets.data();
    input.tensors = tensors_.data();
    input.count = 1;
    input.most = count;
    input.form = form;
    const Times coding =
        time_of([&] { must(wire_encode(input, {units.data(), room}, workspace.data(), outcome_.data(), nullptr)); });
    const WireOutcome coded = outcome_.host()[0];
    report_.check("the delta is coded", static_cast<bool>(wire_status(coded)));

    const DeviceArray<std::int32_t> indices(count);
    const DeviceArray<std::uint16_t> values(count);
    const DeviceArray<std::uint64_t> offsets(2);
    WireDecodeOutput output;
    output.indices32 = indices.data();
    output.values16 = values.data();
    output.offsets = offsets.data();
    output.most = count;
    const Times decoding = time_of([&] {
      must(wire_decode(units.data(), coded.units, tensors_.data(), 1, output, workspace.data(), outcome_.data(),
                       nullptr));
    });
    wrong_.fill(0);
    differs_kernel<<<1024, 256>>>(indices.data(), lists_.narrow.data(), count, wrong_.data());
    differs_kernel<<<1024, 256>>>(values.data(), lists_.values.data(), count, wrong_.data());
    report_.check("what was coded is decoded again",
                  static_cast<bool>(wire_status(outcome_.host()[0])) && wrong_.host()[0] == 0);
    add("coding", form_name, share, count, coded.units, coding);
    add("decoding", form_name, share, count, coded.units, decoding);
  }

  // Rates: of the weights that the delta stands for, 2 bytes each; and of indices and values, 6 bytes a change.
  void add(const char* what, const char* form_name, const Share& share, std::uint64_t count, std::uint64_t units,
           const Times& times) {
    report_.add(Row("wire", what)
                    .add("form", std::string(form_name))
                    .add("elements", kFlat)
                    .add("share", share.wanted)
                    .add("entries", count)
                    .add("bytes_a_change", 8.0 * static_cast<double>(units) / static_cast<double>(count))
                    .add(times)
                    .add("weights_GBps", 2.0 * static_cast<double>(kFlat) / times.median_ms / 1e6)
                    .add("lists_GBps", 6.0 * static_cast<double>(count) / times.median_ms / 1e6));
  }

  Report& report_;
  const Workload& workload_;
  const Lists& lists_;
  DeviceArray<std::uint16_t> base_;
  DeviceArray<WireTensor> tensors_;
  DeviceArray<WireOutcome> outcome_;
  DeviceArray<unsigned long long> wrong_;
};

}  // namespace

void measure_wire(Report& report, const Workload& workload, const Lists& lists, const std::vector<Share>& shares) {
  WireBench bench(report, workload, lists);
  for (const Share& share : shares) bench.run(share);
}

}  // namespace areal::bench
