#include "sim/explore/interleave.h"

#include <algorithm>
#include <numeric>

namespace areal::sim {

Result<InterleaveResult> try_orders(RunSettings settings, const IsWitness& is_witness) {
  const config::InterleaveSpec& spec = *settings.room->scenario.interleave;
  PointOrder order(spec.points.size());
  std::iota(order.begin(), order.end(), 0U);
  InterleaveResult all;
  do {
    settings.order = order;
    auto run = run_once(settings, nullptr);
    if (!run) return run.error();
    ++all.tried;
    all.kept += run->order_kept ? 1 : 0;
    if (!is_witness(*run)) continue;
    if (all.witnesses++ > 0) continue;
    all.witness = order;
    all.witness_run = std::move(*run);
  } while (all.tried < spec.limit && std::ranges::next_permutation(order).found);
  return all;
}

std::string to_text(const config::InterleaveSpec& spec, const PointOrder& order) {
  std::string text;
  for (const std::uint32_t point : order) text += (text.empty() ? "" : ", ") + spec.names[point];
  return text;
}

}  // namespace areal::sim
