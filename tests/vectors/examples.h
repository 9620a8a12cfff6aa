// Worked examples: plain nested lists instead of tensors, and a tolerance of their own.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tests/vectors/registry.h"
#include "tests/vectors/tensors.h"

namespace areal::vectors {

// The example's "tol".
Tolerance example_tolerance(const Json& vector);

// The numbers of nested lists, in order.
Json flattened(const Json& lists);

// Whether two texts, and an error on one side only, differ: what is checked where a case may also be refused.
std::string refusal_miss(const Json& vector, bool refused);

}  // namespace areal::vectors
