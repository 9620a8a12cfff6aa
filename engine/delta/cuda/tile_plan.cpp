#include "engine/delta/cuda/tile_plan.h"

#include "engine/base/check.h"

namespace areal::delta::cuda {

Result<TilePlan> plan_tiles(std::span<const std::uint64_t> tensor_elements, std::uint32_t tile_elements) {
  constexpr std::uint64_t kLimit = 1ULL << 31;
  AREAL_CHECK(tile_elements > 0);
  if (tensor_elements.size() >= kLimit) return Error{Errc::kInvalid, "2^31 tensors and more in one launch"};
  TilePlan plan;
  plan.first_tile.reserve(tensor_elements.size() + 1);
  std::uint64_t tiles = 0;
  for (const std::uint64_t elements : tensor_elements) {
    plan.first_tile.push_back(static_cast<std::uint32_t>(tiles));
    const std::uint64_t own = elements / tile_elements + (elements % tile_elements == 0 ? 0 : 1);
    if (own >= kLimit || tiles + own >= kLimit) return Error{Errc::kInvalid, "2^31 tiles and more in one launch"};
    tiles += own;
    plan.elements += elements;
  }
  plan.first_tile.push_back(static_cast<std::uint32_t>(tiles));
  return plan;
}

}  // namespace areal::delta::cuda
