// A union in order of names, and operations dealt out to it.
#include "engine/delta/dtype_passes.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/fields.h"

namespace areal::delta {

Result<std::vector<DType>> wire_dtype_union(std::span<const std::vector<DType>> by_rank) {
  std::vector<DType> dtypes;
  for (const std::vector<DType>& rank : by_rank) {
    for (const DType dtype : rank) {
      if (std::ranges::find(dtypes, dtype) == dtypes.end()) dtypes.push_back(dtype);
    }
  }
  if (dtypes.empty()) return Error{Errc::kInvalid, "no wire dtypes: no rank sends or receives anything"};
  std::ranges::stable_sort(dtypes, {}, [](DType dtype) { return to_text(dtype); });
  return dtypes;
}

Result<std::vector<DTypePass>> dtype_passes(std::span<const DType> agreed, std::span<const DType> wires) {
  std::vector<DTypePass> passes;
  for (const DType dtype : agreed) passes.push_back({dtype, {}});
  for (std::size_t i = 0; i < wires.size(); ++i) {
    const auto pass = std::ranges::find(passes, wires[i], &DTypePass::dtype);
    if (pass == passes.end()) {
      return Error{Errc::kInvalid,
                   fmt::format("operation {} has wire dtype {}, which was not agreed", i, to_text(wires[i]))};
    }
    pass->ops.push_back(i);
  }
  return passes;
}

}  // namespace areal::delta
