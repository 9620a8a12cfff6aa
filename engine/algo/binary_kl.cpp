#include "engine/algo/binary_kl.h"

#include <cmath>

#include "engine/algo/exponential.h"

namespace areal::algo {

namespace {

template <class Real>
Real divergence(Real log_p, Real log_q, double epsilon) {
  const Real least = static_cast<Real>(epsilon);
  const Real most = static_cast<Real>(1 - epsilon);
  // A NaN is on neither side, and stays.
  const auto inside = [&](Real value) { return value < least ? least : (value > most ? most : value); };
  const Real p = inside(exp_of<Real>(log_p));
  const Real q = inside(exp_of<Real>(log_q));
  return p * std::log(p / q) + (Real(1) - p) * std::log((Real(1) - p) / (Real(1) - q));
}

}  // namespace

float binary_kl(float log_p, float log_q, double epsilon) { return divergence(log_p, log_q, epsilon); }
double binary_kl(double log_p, double log_q, double epsilon) { return divergence(log_p, log_q, epsilon); }

}  // namespace areal::algo
