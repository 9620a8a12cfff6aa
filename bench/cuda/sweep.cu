// B15: true fp32 AdamW steps in the operation orders that optimizers have, contracted and not, then the rule on what
// the optimizer holds afterwards. Nothing that changed may be missed; what is marked beyond that is counted.
#include <iterator>

#include "bench/cuda/sections.h"
#include "engine/delta/adamw_orders.h"
#include "tests/cuda/strata.h"

namespace areal::bench {
namespace {

using namespace delta::cuda;  // NOLINT(google-build-using-namespace): the subject of this file
using delta::Contraction;
using delta::OrderScalars;
using delta::StepOrder;

constexpr const char* kOrderNames[] = {"torch", "torch gpu", "capturable", "fused", "apex", "inverse", "reciprocal"};
constexpr const char* kContractionNames[] = {"off", "on", "other"};
static_assert(std::size(kOrderNames) == delta::kStepOrders.size());
static_assert(std::size(kContractionNames) == delta::kContractions.size());

struct Way {
  StepOrder order = StepOrder::kTorch;
  Contraction contraction = Contraction::kOff;
};

template <StepOrder kOrder>
__device__ float step_in(Contraction contraction, const OrderScalars& by, const tests::State& state) {
  switch (contraction) {
    case Contraction::kOff:
      return delta::stepped_weight<kOrder, Contraction::kOff>(by, state.weight, state.exp_avg, state.exp_avg_sq);
    case Contraction::kOn:
      return delta::stepped_weight<kOrder, Contraction::kOn>(by, state.weight, state.exp_avg, state.exp_avg_sq);
    case Contraction::kOther:
      return delta::stepped_weight<kOrder, Contraction::kOther>(by, state.weight, state.exp_avg, state.exp_avg_sq);
  }
  return 0.0F;
}

// All threads of a launch go the same way.
__device__ float step(const Way& way, const OrderScalars& by, const tests::State& state) {
  switch (way.order) {
    case StepOrder::kTorch:
      return step_in<StepOrder::kTorch>(way.contraction, by, state);
    case StepOrder::kTorchGpu:
      return step_in<StepOrder::kTorchGpu>(way.contraction, by, state);
    case StepOrder::kCapturable:
      return step_in<StepOrder::kCapturable>(way.contraction, by, state);
    case StepOrder::kTorchFused:
      return step_in<StepOrder::kTorchFused>(way.contraction, by, state);
    case StepOrder::kApex:
      return step_in<StepOrder::kApex>(way.contraction, by, state);
    case StepOrder::kInverse:
      return step_in<StepOrder::kInverse>(way.contraction, by, state);
    case StepOrder::kReciprocal:
      return step_in<StepOrder::kReciprocal>(way.contraction, by, state);
  }
  return 0.0F;
}

struct Counts {
  unsigned long long changed;
  unsigned long long missed[3];  // Proven, reference's margin, no margin.
  unsigned long long marked[3];
};

// Where the weight before the step lies: as trained weights do, or a few neighbours from a rounding boundary, or near a
// power of two.
enum class Place : std::uint32_t { kRealistic, kBoundary, kPowerOfTwo };

__device__ float weight_before(Place place, tests::Words& words, float realistic) {
  if (place == Place::kRealistic) return realistic;
  const std::uint64_t word = words.next();
  const auto aside = static_cast<std::uint32_t>(word % 129) - 64U;
  const std::uint32_t bits = delta::float_bits(realistic);
  if (place == Place::kBoundary) return delta::float_of_bits((bits & 0xFFFF0000U) + 0x8000U + aside);
  return delta::float_of_bits((bits & 0xFF800000U) + aside);
}

__global__ void __launch_bounds__(256)
    sweep_kernel(const Way way, const __grid_constant__ OrderScalars by, const __grid_constant__ ChangeRule proven,
                 const __grid_constant__ ChangeRule reference, Place place, std::uint64_t elements, Counts* counts) {
  Counts mine{};
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += stride) {
    tests::Words words(4040, i);
    tests::State state = tests::realistic_state(words);
    state.weight = weight_before(place, words, state.weight);
    const float before = state.weight;
    const float after = step(way, by, state);
    const std::uint16_t current = delta::to_bf16(after);
    const bool changed = delta::to_bf16(before) != current;
    ChangeRule bare = reference;
    bare.margin_rel = 0.0F;
    const bool marks[3] = {rule_marks(proven, after, state.exp_avg, state.exp_avg_sq, current),
                           rule_marks(reference, after, state.exp_avg, state.exp_avg_sq, current),
                           rule_marks(bare, after, state.exp_avg, state.exp_avg_sq, current)};
    mine.changed += changed ? 1 : 0;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      mine.missed[k] += changed && !marks[k] ? 1 : 0;
      mine.marked[k] += marks[k] ? 1 : 0;
    }
  }
  atomicAdd(&counts->changed, mine.changed);
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    atomicAdd(&counts->missed[k], mine.missed[k]);
    atomicAdd(&counts->marked[k], mine.marked[k]);
  }
}

struct Setting {
  double learning_rate;
  double weight_decay;
  Way way;
  Place place;
};

Counts count(const Setting& setting, std::uint64_t elements) {
  constexpr std::uint64_t kStep = 100;
  const delta::ProvenStep step = tests::step_of(setting.learning_rate, setting.weight_decay, 0.95, kStep);
  const OrderScalars by = delta::order_scalars({.learning_rate = setting.learning_rate,
                                                .weight_decay = setting.weight_decay,
                                                .beta1 = 0.9,
                                                .beta2 = 0.95,
                                                .epsilon = step.epsilon},
                                               kStep);
  DeviceArray<Counts> counts(1);
  counts.fill(0);
  sweep_kernel<<<2112, 256>>>(setting.way, by, proven_rule(step), reference_rule(step), setting.place, elements,
                              counts.data());
  must(cudaGetLastError(), "sweep");
  return counts.host()[0];
}

std::uint64_t run(Report& report, const Setting& setting, const char* what, std::uint64_t elements) {
  const Counts found = count(setting, elements);
  const double all = static_cast<double>(elements);
  const auto over = [&](int k) {
    const auto true_marks = static_cast<double>(found.changed - found.missed[k]);
    return (static_cast<double>(found.marked[k]) - true_marks) / all;
  };
  report.add(Row("sweep", what)
                 .add("lr", setting.learning_rate)
                 .add("wd", setting.weight_decay)
                 .add("order", std::string(kOrderNames[static_cast<int>(setting.way.order)]))
                 .add("contraction", std::string(kContractionNames[static_cast<int>(setting.way.contraction)]))
                 .add("elements", elements)
                 .add("changed", static_cast<double>(found.changed) / all)
                 .add("missed", std::uint64_t{found.missed[0]})
                 .add("over_marked", over(0))
                 .add("missed_reference", std::uint64_t{found.missed[1]})
                 .add("over_reference", over(1))
                 .add("missed_bare", std::uint64_t{found.missed[2]}));
  return found.missed[0];
}

}  // namespace

void sweep(Report& report, std::uint64_t elements) {
  std::uint64_t missed = 0;
  for (const double learning_rate : {1e-6, 1e-5, 1e-4}) {
    for (const double weight_decay : {0.0, 0.01}) {
      for (const StepOrder order : delta::kStepOrders) {
        for (const Contraction contraction : delta::kContractions) {
          Setting setting{learning_rate, weight_decay, {order, contraction}, Place::kRealistic};
          missed += run(report, setting, "realistic", elements);
          setting.place = Place::kBoundary;
          missed += run(report, setting, "beside a rounding boundary", elements / 16);
          setting.place = Place::kPowerOfTwo;
          missed += run(report, setting, "beside a power of two", elements / 16);
        }
      }
    }
  }
  report.check("nothing that changed is missed", missed == 0);
}

}  // namespace areal::bench
