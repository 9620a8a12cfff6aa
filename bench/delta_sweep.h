// Steps in all operation orders over many drawn weights: are all true changes marked, and how many others?
#pragma once
#include <cstdint>
#include <vector>

#include "engine/delta/adamw_orders.h"

namespace areal::bench {

// How weights and moments are drawn. Over-marking counts where training is; the others are where rounding is hardest.
enum class Stratum : std::uint8_t {
  kTraining,  // Weights of N(0, 0.02), moments whose quotient is that of training.
  kMidpoint,  // Weights at most 3 neighbours from half way between two bf16 values.
  kEdge,      // The same around powers of two.
  kTiny,      // Denormal and nearly denormal weights and moments.
};

struct SweepCell {
  double learning_rate = 0;
  double weight_decay = 0;
  bool is_contracted = false;
  std::uint32_t number = 0;  // Of the cell: each draws weights of its own.
};

struct SweepCounts {
  std::uint64_t weights = 0;
  std::uint64_t changed = 0;  // In bf16.
  std::uint64_t missed = 0;   // Changed and not marked.
  std::uint64_t over = 0;     // Marked and not changed.

  void add(const SweepCounts& other);
};

struct SweepResult {
  SweepCounts proven;       // In training.
  SweepCounts proven_hard;  // In the other strata.
  SweepCounts margin;       // The reference's margin, in training.
  SweepCounts margin_hard;
  SweepCounts quarter_hard;  // A quarter of the proven bound, as a defect that must be found.
};

// About `weights` of them, spread over all orders and strata. Equal for equal arguments, for any number of threads.
SweepResult sweep(const SweepCell& cell, std::uint64_t weights, std::uint32_t threads);

}  // namespace areal::bench
