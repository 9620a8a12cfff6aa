#include "engine/algo/prompt_length.h"

namespace areal::algo {

std::vector<std::int64_t> prompt_lengths(const Rows& rows, Mask attention, Mask trained) {
  AREAL_CHECK(attention.size() == rows.elements());
  AREAL_CHECK(trained.size() == rows.elements());
  std::vector<std::int64_t> lengths;
  lengths.reserve(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const Mask own = rows.of(trained, row);
    if (own.empty()) {
      lengths.push_back(0);
      continue;
    }
    // The entry of the last element belongs to the first token: the roll is cyclic.
    std::size_t place = 0;
    if (own.back() == 0) {
      while (place < own.size() && own[place] == 0) ++place;
      place = place == own.size() ? count(rows.of(attention, row)) : place + 1;
    }
    lengths.push_back(static_cast<std::int64_t>(place));
  }
  return lengths;
}

Shape token_shape(const TokenShapes& shapes, const Shape& statistic) {
  if (shapes.attention_mask) return *shapes.attention_mask;
  if (shapes.cu_seqlens && !shapes.cu_seqlens->empty()) {
    return {static_cast<std::size_t>(shapes.cu_seqlens->back())};
  }
  if (shapes.input_ids && *shapes.input_ids == statistic) return *shapes.input_ids;
  return statistic;
}

}  // namespace areal::algo
