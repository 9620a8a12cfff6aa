// What a worker knows about delta updates: read once from its environment, never changed (spec/transfer.md 1.2,
// INV-DELTA-SNAPSHOT).
//
// Every DTE_* variable falls back to its older AWEX_* (two of them PYQ_*) name; a blank value counts as unset, an
// explicit 0 does not. Flags are true for 1, true, yes and on, whatever their case and blanks around them. Values, safe
// to share between threads.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/environment.h"

namespace areal::config {

// How the pre-step weights are found and the differences sent.
struct DeltaTuning {
  bool streaming_reconstruct = false;   // One parameter after the other instead of all first.
  std::uint64_t window = 512ULL << 20;  // Bytes of corrections in flight; 0: each pair is waited for.
  bool compute_on_cpu = false;          // Else where the payload lies.
  double bf16_margin = 1e-4;            // Relative width of the guard around rounding boundaries.
  std::vector<std::string> dense_suffixes{".mlp.gate.weight"};  // Parameters that are always sent in full.
  std::int64_t boundary_chunk = 50'000'000;                     // Elements; 0 or less: no chunks.
  bool coalesce = true;                                         // Messages to one peer are put together.
  bool debug = false;
  bool group_transfers = true;  // Point-to-point operations are posted as one batch.
};

class DeltaEnvironment {
 public:
  // Refuses numbers that are none.
  static Result<DeltaEnvironment> read(const Environment& environment);

  [[nodiscard]] bool delta_transfer() const { return delta_transfer_; }
  [[nodiscard]] bool separation_weight_update() const { return separation_weight_update_; }
  [[nodiscard]] bool enabled() const { return delta_transfer_ && separation_weight_update_; }
  [[nodiscard]] std::int64_t anchor_interval() const { return anchor_interval_; }
  [[nodiscard]] const DeltaTuning& tuning() const { return tuning_; }
  // Whether the parameter of this name is sent in full even in a delta.
  [[nodiscard]] bool is_always_dense(std::string_view parameter) const;

 private:
  DeltaEnvironment() = default;

  // Set at construction.
  bool delta_transfer_ = false;
  bool separation_weight_update_ = false;
  std::int64_t anchor_interval_ = 0;
  DeltaTuning tuning_;
};

// Whether so many ranks can exchange differences: the exchange halves their number in every round, so all of them
// together must be a power of two (INV-DELTA-POW2). To be checked before any group is made, and only with deltas on.
Status check_delta_world(std::int64_t infer, std::int64_t train, std::int64_t combined);

}  // namespace areal::config
