// Worked examples: nested lists instead of tensors, and a tolerance of their own.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "tests/vectors/registry.h"
#include "tests/vectors/tensors.h"

namespace areal::vectors {

// All numbers of nested lists in order; what is already a tensor or a flat list stays as it is.
Json flat(const Json& nested);

// Lengths of the outer and the inner lists; a flat list is one column.
struct Sides {
  std::size_t rows = 0;
  std::size_t width = 1;
};
Sides sides_of(const Json& nested);

// The case's "tol".
Tolerance tolerance_of(const Json& vector);

// Empty if a case that wants an error was refused, and one that wants none was not.
std::string refusal_miss(const Json& vector, bool refused);

}  // namespace areal::vectors
