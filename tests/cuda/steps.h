// Optimizer steps that tests of change rules go through.
#pragma once
#include <cmath>
#include <vector>

#include "engine/delta/proven_bound.h"

namespace areal::tests {

inline delta::ProvenStep step_of(double learning_rate, double weight_decay, double beta2, std::uint64_t t,
                                 double epsilon = 1e-8) {
  delta::ProvenStep step;
  step.learning_rate = learning_rate;
  step.weight_decay = weight_decay;
  step.epsilon = epsilon;
  step.bc1 = 1.0 - std::pow(0.9, static_cast<double>(t));
  step.bc2 = 1.0 - std::pow(beta2, static_cast<double>(t));
  step.t = t;
  return step;
}

inline std::vector<delta::ProvenStep> steps_to_test() {
  return {step_of(1e-6, 0.0, 0.95, 100),      step_of(1e-6, 0.01, 0.95, 100),     step_of(3e-5, 0.1, 0.999, 1),
          step_of(1e-3, 0.1, 0.999, 3),       step_of(1e-2, 1.0, 0.999, 50),      step_of(1e-8, 0.0, 0.95, 100000),
          step_of(1e-4, 0.0, 0.99, 10, 1e-5), step_of(1e-5, 0.0, 0.95, 100, 0.0),  // No epsilon: the screen is off.
          step_of(0.5, 0.25, 0.95, 100),  // Outside what is proven: every element is marked.
          step_of(0.0, 0.0, 0.95, 100)};
}

}  // namespace areal::tests
