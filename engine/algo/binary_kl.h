// Kullback-Leibler divergence of two coins: the sampled token against all others.
//
// p log(p/q) + (1-p) log((1-p)/(1-q)) with p and q kept in [eps, 1-eps]. In fp32 1 - 1e-8 is 1: a probability of 1 then
// gives 0 * log 0, a NaN, as the reference does. Pure; each element on its own; nats. Source: the binary
// Kullback-Leibler divergence of AReaL.
#pragma once

namespace areal::algo {

inline constexpr double kBinaryKlEpsilon = 1e-8;

float binary_kl(float log_p, float log_q, double epsilon = kBinaryKlEpsilon);
double binary_kl(double log_p, double log_q, double epsilon = kBinaryKlEpsilon);

}  // namespace areal::algo
