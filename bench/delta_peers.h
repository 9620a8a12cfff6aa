// What finding changed weights is compared with: reading the same memory, a pass for each operation, and torch.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/torch_process.h"
#include "engine/delta/cpu/change_finder.h"

namespace areal::bench {

// Weights around N(0, 0.02), first moments of U(-5e-5, 5e-5), second ones their squares times U(0.5, 1.5).
struct OptimizerArrays {
  std::vector<float> weights;
  std::vector<float> exp_avg;
  std::vector<float> exp_avg_sq;
};

OptimizerArrays make_arrays(std::size_t count, std::uint64_t seed);

inline delta::OptimizerSpans spans_of(const OptimizerArrays& arrays, std::size_t count) {
  return {std::span(arrays.weights).first(count), std::span(arrays.exp_avg).first(count),
          std::span(arrays.exp_avg_sq).first(count), 0};
}

// Reads all three arrays once with `threads`; the result keeps a compiler from leaving it out.
std::uint32_t read_once(const OptimizerArrays& arrays, std::uint32_t threads);

// One pass and one temporary for each operation, then a pass that collects: no guard. Compiled for AVX2.
class MultiPass {
 public:
  explicit MultiPass(std::size_t count);
  void find(const delta::InversionScalars& scalars, const OptimizerArrays& arrays,
            delta::FoundChanges<std::int32_t>& found);

 private:
  std::vector<float> denominator_;
  std::vector<float> update_;
  std::vector<float> old_;
  std::vector<std::uint16_t> current_;
  std::vector<std::uint8_t> mask_;
};

// bench/peers/delta_torch.py in a process of its own, on copies of the same arrays. One caller.
class TorchPeer {
 public:
  // Nothing where the script cannot run; `why` says why.
  static std::unique_ptr<TorchPeer> start(const std::string& script, const OptimizerArrays& arrays,
                                          std::uint32_t threads, std::string& why);

  [[nodiscard]] const std::string& version() const { return process_->version(); }
  // Seconds of one pass, with the reference's guard or without.
  double find(const delta::InversionScalars& scalars, bool with_guard, float margin_rel);
  // What the last pass found.
  std::vector<std::int32_t> indices();

 private:
  explicit TorchPeer(std::unique_ptr<TorchProcess> process) : process_(std::move(process)) {}

  std::unique_ptr<TorchProcess> process_;
};

}  // namespace areal::bench
