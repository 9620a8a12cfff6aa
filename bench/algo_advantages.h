// Advantages by token and turn against memory and torch, and how long packing takes; a part of algo_bench.
#pragma once

namespace areal::bench {

struct AdvantageWishes {
  bool is_quick = false;   // Small sizes, once.
  bool has_peers = false;  // Also torch eager on one thread, in turns.
};

// Prints a table for each size.
void measure_advantages(const AdvantageWishes& wishes);

}  // namespace areal::bench
