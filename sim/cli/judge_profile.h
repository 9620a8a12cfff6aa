// What each judge costs: `areal-sim SCENARIO.yaml --profile-judges`.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/check/judge.h"

namespace areal::cli {

struct JudgeCost {
  std::string name;
  std::uint64_t events = 0;  // That it was handed.
  std::int64_t wall_ns = 0;  // Within it, what reading the clock takes included.
};

// Times the judges of one run. Must outlive them. Not thread-safe.
class JudgeProfile final : public sim::JudgeWrapper {
 public:
  // The same judge, timed; a clone of it is timed under the same name.
  std::unique_ptr<sim::Judge> around(std::unique_ptr<sim::Judge> judge) override;
  // A table for people, the dearest first. `wall_s`: of the whole run.
  [[nodiscard]] std::string table(double wall_s) const;

 private:
  std::vector<std::unique_ptr<JudgeCost>> costs_;
};

}  // namespace areal::cli
