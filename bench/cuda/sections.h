// The parts of the benchmark; each adds rows to the report.
#pragma once
#include <vector>

#include "bench/cuda/measure.h"
#include "bench/cuda/workload.h"

namespace areal::bench {

// GB/s, best of the ways tried; a copy counts bytes read and written.
struct Ceilings {
  double copy = 0;
  double read = 0;
};
Ceilings measure_ceilings(Report& report, const Workload& workload);

// B11: flat, many tensors, snapshots; checked against the rule without screen.
void measure_detect(Report& report, const Workload& workload, const Lists& lists, const std::vector<Share>& shares,
                    const Ceilings& ceilings);
// CUB on the same data, checked to find the same.
void measure_cub(Report& report, const Workload& workload, const Lists& lists, const std::vector<Share>& shares,
                 const Ceilings& ceilings);
// B12, and passes over whole tensors.
void measure_apply(Report& report, const Workload& workload, const Lists& lists, const std::vector<Share>& shares,
                   const Ceilings& ceilings);
// The wire coding of what the detector finds; checked to decode to it.
void measure_wire(Report& report, const Workload& workload, const Lists& lists, const std::vector<Share>& shares);
// B15: steps forward, then the rule; nothing may be missed. `elements` for each setting.
void sweep(Report& report, std::uint64_t elements);

}  // namespace areal::bench
