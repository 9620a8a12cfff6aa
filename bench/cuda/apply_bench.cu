// B12: patches into bf16 weights, sorted and shuffled, and whole copies; then passes over whole tensors.
#include <algorithm>

#include "bench/cuda/sections.h"
#include "engine/base/rng.h"
#include "engine/delta/cuda/apply.h"
#include "engine/delta/cuda/apply_rule.h"
#include "engine/delta/cuda/tensor_scan.h"

namespace areal::bench {
namespace {

using namespace delta::cuda;  // NOLINT(google-build-using-namespace): the subject of this file

constexpr std::uint64_t kFlat = 1ULL << 30;

__global__ void weights_kernel(std::uint16_t* weights, std::uint64_t elements) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    weights[i] = static_cast<std::uint16_t>(mix_words(11, i) | 0x4000U) & 0xBFFFU;
  }
}

__global__ void mismatch_kernel(const std::uint16_t* weights, const std::int32_t* indices, const std::uint16_t* values,
                                std::uint64_t count, unsigned long long* wrong) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    if (weights[indices[i]] != values[i]) atomicAdd(wrong, 1ULL);
  }
}

class ApplyBench {
 public:
  ApplyBench(Report& report, const Workload& workload, const Lists& lists, const Ceilings& ceilings)
      : report_(report),
        workload_(workload),
        lists_(lists),
        ceilings_(ceilings),
        weights_(kFlat),
        targets_(1),
        refused_(1),
        wrong_(1) {
    weights_kernel<<<4096, 256>>>(weights_.data(), kFlat);
    const ApplyTarget target{weights_.data(), kFlat};
    targets_.put(std::span(&target, 1));
    refused_.fill(0);
    wrong_.fill(0);
  }

  // Leaves the detector's lists for this share in `lists`.
  std::uint64_t detect(const Share& share) {
    const auto tensors = workload_.tensors(kFlat);
    const DetectTable table = must(DetectTable::make(std::span<const OptimizerTensor>(tensors)));
    const ChangeRule rule = proven_rule(step_with(share.learning_rate));
    const DeviceArray<ChangeRule> rules(std::span(&rule, 1));
    must(detect_changes(table, rules.data(), 1, lists_.output(false), nullptr));
    return lists_.total(1);
  }

  void shuffle(std::uint64_t count) {
    std::vector<std::int32_t> indices = lists_.narrow.host(0, count);
    std::vector<std::uint16_t> values = lists_.values.host(0, count);
    Rng rng(5);
    for (std::uint64_t i = count; i > 1; --i) {
      const std::uint64_t other = rng.draw_below(i);
      std::swap(indices[i - 1], indices[other]);
      std::swap(values[i - 1], values[other]);
    }
    lists_.narrow.put(indices);
    lists_.values.put(values);
  }

  void run(const char* what, const Share& share, std::uint64_t count) {
    const PatchList list{lists_.narrow.data(), nullptr, lists_.values.data(), lists_.offsets.data(), 1, count};
    const Times times = time_of([&] { must(apply_sparse(targets_.data(), list, refused_.data(), nullptr)); });
    // The roofline of B12: sectors of 32 bytes, filled and written back.
    const double bytes = 6.0 * static_cast<double>(count) + 64.0 * touched_pieces(kFlat, count, 16);
    const ApplyForm form = apply_form(kFlat, count, 4);
    report_.add(Row("apply", what)
                    .add("elements", kFlat)
                    .add("share", share.wanted)
                    .add("entries", count)
                    .add(times)
                    .add("model_GBps", bytes / times.median_ms / 1e6)
                    .add("of_copy", bytes / times.median_ms / 1e6 / ceilings_.copy)
                    .add("form", std::string(form == ApplyForm::kDense ? "dense" : "sparse")));
    mismatch_kernel<<<1024, 256>>>(weights_.data(), lists_.narrow.data(), lists_.values.data(), count, wrong_.data());
    report_.check("patch is in the weights", wrong_.host()[0] == 0 && refused_.host()[0] == 0);
    const double chosen = form == ApplyForm::kDense ? dense_ms_ : times.median_ms;
    report_.check("the rule's form takes at most a tenth more", chosen < 1.1 * std::min(dense_ms_, times.median_ms));
  }

  void dense() {
    const DeviceArray<std::uint16_t> source(kFlat);
    weights_kernel<<<4096, 256>>>(source.data(), kFlat);
    std::vector<DenseCopy> copies{{source.data(), weights_.data(), kFlat, 0}};
    const std::uint64_t chunks = number_chunks(std::span(copies));
    const DeviceArray<DenseCopy> there = tests::on_device(copies);
    const Times times = time_of([&] { must(copy_dense(there.data(), 1, chunks, nullptr)); });
    dense_ms_ = times.median_ms;
    const double rate = dense_apply_bytes(kFlat) / times.median_ms / 1e6;
    report_.add(Row("apply", "dense copy")
                    .add("elements", kFlat)
                    .add(times)
                    .add("GBps", rate)
                    .add("of_copy", rate / ceilings_.copy));
    const Times engine =
        time_of([&] { cudaMemcpyAsync(weights_.data(), source.data(), 2 * kFlat, cudaMemcpyDeviceToDevice); });
    report_.add(Row("apply", "dense cudaMemcpy").add("elements", kFlat).add(engine));
  }

  void scans() {
    std::vector<TensorPiece> pieces{{weights_.data(), kFlat, 0, 0, 1, 0}};
    const std::uint64_t chunks = number_chunks(std::span(pieces));
    const DeviceArray<TensorPiece> there = tests::on_device(pieces);
    const PieceList list{there.data(), 1, chunks, 2};
    const DeviceArray<unsigned char> scratch(digest_scratch_bytes(1));
    const DeviceArray<Digest128> digest(1);
    const DeviceArray<DeviceFingerprint> print(1);
    const DeviceArray<std::uint64_t> count(1);
    const auto add = [&](const char* what, const Times& times) {
      const double rate = 2.0 * static_cast<double>(kFlat) / times.median_ms / 1e6;
      report_.add(
          Row("scan", what).add("elements", kFlat).add(times).add("GBps", rate).add("of_read", rate / ceilings_.read));
    };
    add("digest", time_of([&] { must(digest_pieces(list, scratch.data(), digest.data(), nullptr)); }));
    add("fingerprint", time_of([&] { must(fingerprint_pieces(list, print.data(), nullptr)); }));
    add("not finite", time_of([&] { must(count_not_finite(list, count.data(), nullptr)); }));
  }

 private:
  double dense_ms_ = 0;  // Of a whole copy: dense() comes first.
  Report& report_;
  const Workload& workload_;
  const Lists& lists_;
  const Ceilings& ceilings_;
  DeviceArray<std::uint16_t> weights_;
  DeviceArray<ApplyTarget> targets_;
  DeviceArray<std::uint64_t> refused_;
  DeviceArray<unsigned long long> wrong_;
};

}  // namespace

void measure_apply(Report& report, const Workload& workload, const Lists& lists, const std::vector<Share>& shares,
                   const Ceilings& ceilings) {
  ApplyBench bench(report, workload, lists, ceilings);
  bench.dense();
  for (const Share& share : shares) {
    const std::uint64_t count = bench.detect(share);
    bench.run("sorted", share, count);
    if (share.wanted != 0.01) continue;
    bench.shuffle(count);
    bench.run("shuffled", share, count);
  }
  bench.scans();
}

}  // namespace areal::bench
