#include "engine/algo/masked_normalization.h"

#include <fmt/format.h>

#include <cmath>

namespace areal::algo {

namespace {

struct Sums {
  double count = 0;
  double sum = 0;
  double squares = 0;
};

struct Scale {
  double mean = 0;
  double by = 1;
};

// For each element the number of its slot: elements that differ in reduced dimensions alone share one.
struct Slots {
  std::vector<std::size_t> of_element;
  std::size_t count = 1;
};

Slots slots_of(std::span<const std::size_t> shape, const std::vector<bool>& is_reduced, std::size_t elements) {
  Slots slots{std::vector<std::size_t>(elements, 0), 1};
  std::size_t inner = 1;  // Elements of one index of the dimension.
  for (std::size_t dim = shape.size(); dim-- > 0;) {
    if (!is_reduced[dim]) {
      for (std::size_t at = 0; at < elements; ++at) slots.of_element[at] += at / inner % shape[dim] * slots.count;
      slots.count *= shape[dim];
    }
    inner *= shape[dim];
  }
  return slots;
}

Scale scale_of(const Sums& sums, const MaskedNorm& norm) {
  const double mean = sums.sum / sums.count;
  // Both terms are rounded: of equal values their difference may come out below 0. A NaN stays.
  double variance = sums.squares / sums.count - mean * mean;
  if (variance < 0) variance = 0;
  if (norm.unbiased) variance *= sums.count / (sums.count - 1);
  return {mean, std::sqrt(variance) + norm.eps};
}

}  // namespace

Result<std::vector<float>> masked_normalize(const MaskedNorm& norm, std::span<const std::size_t> shape,
                                            std::span<const float> x, std::optional<Mask> mask) {
  std::size_t elements = 1;
  for (const std::size_t side : shape) elements *= side;
  AREAL_CHECK(x.size() == elements);
  AREAL_CHECK(!mask || mask->size() == elements);
  std::vector<bool> is_reduced(shape.size(), !norm.dims.has_value());
  for (const std::size_t dim : norm.dims.value_or(std::vector<std::size_t>{})) {
    if (dim >= shape.size()) return Error{Errc::kInvalid, fmt::format("dimension {} of {}", dim, shape.size())};
    is_reduced[dim] = true;
  }
  const Slots slots = slots_of(shape, is_reduced, elements);
  const auto kept = [&](std::size_t at) { return mask && (*mask)[at] == 0 ? 0.0 : static_cast<double>(x[at]); };
  std::vector<Sums> sums(slots.count);
  for (std::size_t at = 0; at < elements; ++at) {
    Sums& own = sums[slots.of_element[at]];
    if (!mask || (*mask)[at] != 0) own.count += 1;
    own.sum += kept(at);
    own.squares += kept(at) * kept(at);
  }
  std::vector<Scale> scales;
  scales.reserve(sums.size());
  for (const Sums& own : sums) scales.push_back(scale_of(own, norm));
  std::vector<float> out(elements);
  for (std::size_t at = 0; at < elements; ++at) {
    const Scale& own = scales[slots.of_element[at]];
    out[at] = static_cast<float>((kept(at) - own.mean) / own.by);
  }
  return out;
}

}  // namespace areal::algo
