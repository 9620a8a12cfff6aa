// First fit decreasing, evened out by the number of items.
//
// Lengths are taken in descending order, equal ones by index. While there are fewer groups than asked for, or none has
// room, a new group opens; else the length goes to the group with the fewest items among those with room, and of
// several such to the one with the least load, then the first opened. If the number of groups is then no multiple of
// the divisor, all is done again with the next multiple as the least number. Groups are in the order of opening.
//
// n lengths cost O(n log n): of the groups with one number of items only the least loaded can be chosen, so that one
// heap for each number and a tree over their least loads find it. Source: spec 2.9.
#pragma once
#include "engine/algo/packing.h"

namespace areal::algo {

// kInvalid: what least_groups refuses, and a number of groups that is never a multiple of the divisor.
Result<Groups> first_fit_decreasing(Lengths lengths, const PackLimits& limits);

}  // namespace areal::algo
