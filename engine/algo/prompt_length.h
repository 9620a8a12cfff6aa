// How long a prompt was, read from masks, and how many tokens a statistic is over.
//
// Pure functions on [B, S] masks, row-major. Source: spec 5.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/algo/masked.h"
#include "engine/algo/rows.h"

namespace areal::algo {

// One length for each row: where the first trained token stands, `trained` being aligned with the prediction (one to
// the left of the token). A row with no trained token has its attended tokens. Unlike a difference of sums it does not
// grow when tokens of the answer are filtered out; if the first of those is, it names the first that is left. REQUIRES:
// an entry of both masks for each element.
std::vector<std::int64_t> prompt_lengths(const Rows& rows, Mask attention, Mask trained);

using Shape = std::vector<std::size_t>;

// What a batch says of its shape; what it lacks is nullopt.
struct TokenShapes {
  std::optional<Shape> attention_mask;
  std::optional<std::vector<std::int32_t>> cu_seqlens;
  std::optional<Shape> input_ids;
};

// The shape of the mask of all tokens: that of the attention mask; else as many as cu_seqlens ends with; else that of
// the ids if it is the statistic's own; else the statistic's.
Shape token_shape(const TokenShapes& shapes, const Shape& statistic);

}  // namespace areal::algo
