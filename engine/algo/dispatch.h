// A batch shared out to data-parallel ranks, evenly by tokens.
//
// The unit that is never split is `unit` consecutive items: one task result, or a chosen and a rejected answer. Units
// go to ranks by balanced_greedy with their attended tokens as values. Pure function. Source: spec 2.9.
#pragma once
#include "engine/algo/packing.h"

namespace areal::algo {

// For each rank the indices of its items; those of a unit stay together and in order. Every item is on one rank.
// kInvalid: unit or ranks less than 1, items that are no multiple of unit, fewer units than ranks, a sum beyond
// 64 bits.
Result<Groups> dispatched(Lengths tokens, std::size_t ranks, std::size_t unit);

}  // namespace areal::algo
