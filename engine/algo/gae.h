// Generalized advantage estimation over the tokens or the turns of sequences (Schulman et al., arXiv:1506.02438).
//
// By token, for a row of S elements, with nv = bootstrap and last = 0 at its end and adv[S-1] = 0; t from S-2 to 0:
//   new = rewards[t] + γ nv - values[t] + γ λ last;  a trained t sets nv = values[t] and last = new;  adv[t] = last
// so that an element that is not trained carries the advantage of the next trained one. return = advantage + value.
//
// By turn: R is the sum of the rewards on a turn's trained tokens, V the value on the first of them. From the last turn
// to the first: A = R + γ nv - V + γ λ A_next, nv = V. Every trained token of the turn has advantage A and return A +
// V; the others have advantage 0 and their value as return. Turns without a trained token cost neither γ nor λ.
//
// Elements that are not trained are never read into an advantage; their own return holds their value, whatever it is.
// Arithmetic is float32 in the order above, each row on its own; R is summed in double, from the
// last token to the first. Rows may be padded or packed.
// Source: spec 4.2, 4.3. Not thread-bound: pure functions.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/algo/masked.h"
#include "engine/algo/rows.h"
#include "engine/base/result.h"

namespace areal::algo {

struct GaeInput {
  const Rows& rows;
  std::span<const float> rewards;    // One for each element.
  std::span<const float> values;     // One for each element.
  Mask trained;                      // One for each element, aligned with the rewards.
  std::span<const float> bootstrap;  // One for each row: the value of what comes after it; 0 where it ended.
  std::span<const float> decay;      // One for each row: γ λ; see decays().
  float discount = 1;                // γ
};

// One for each element.
struct GaeOutput {
  std::span<float> advantages;
  std::span<float> returns;
};

// γ λ of each row: of a λ for all, multiplied in double and rounded once; or of one λ each, multiplied in float32.
std::vector<float> decays(double discount, double lambda, std::size_t rows);
std::vector<float> decays(double discount, std::span<const float> lambda);

// The last value of each row that is cut off, 0 for the others; the last value of a row that ended is not read.
// kInvalid: a row without elements has no last value. REQUIRES: one flag for each row.
Result<std::vector<float>> bootstraps(const Rows& rows, std::span<const float> values, Mask is_cut_off);

// REQUIRES: all sizes fit. Input and output do not overlap.
void gae_by_token(const GaeInput& input, GaeOutput output);

// `turn_ids`: one for each element, read at trained ones alone. kInvalid: another number of ids; at a trained element,
// an id that is negative, not smaller than the row is long, or smaller than the one before. Then the output is
// unspecified.
Status gae_by_turn(const GaeInput& input, std::span<const std::int32_t> turn_ids, GaeOutput output);

}  // namespace areal::algo
