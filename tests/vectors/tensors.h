// Tensors as vectors spell them: {"dtype", "shape", "data"}, row-major, with "nan", "inf" and "-inf" as texts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/vectors/registry.h"

namespace areal::vectors {

// A number, or one of the three texts.
double number_of(const Json& json);

std::vector<std::size_t> shape_of(const Json& tensor);
std::vector<float> floats_of(const Json& tensor);
std::vector<double> doubles_of(const Json& tensor);
std::vector<std::int64_t> integers_of(const Json& tensor);
std::vector<std::int32_t> int32_of(const Json& tensor);
std::vector<std::uint8_t> mask_of(const Json& tensor);  // 1 where an entry is not 0

// |wanted - got| <= absolute + relative * |wanted|; a NaN is near any NaN, an infinity near itself alone.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};

// The kinds of the tolerance table in the vectors' README.
inline constexpr Tolerance kElementwise{2e-6, 1e-7};
inline constexpr Tolerance kGaeRecursion{1e-5, 1e-7};
inline constexpr Tolerance kWithExp{3e-6, 2e-7};
inline constexpr Tolerance kReduced{1e-5, 1e-7};
inline constexpr Tolerance kNormalized{1e-5, 2e-6};
inline constexpr Tolerance kFloat64{1e-12, 1e-15};

// The first value that is not near `wanted` (a tensor, a list or a number), with its place; or an empty text.
std::string values_miss(std::string_view field, const Json& wanted, std::span<const double> got, Tolerance tolerance);
std::string values_miss(std::string_view field, const Json& wanted, std::span<const float> got, Tolerance tolerance);
std::string value_miss(std::string_view field, const Json& wanted, double got, Tolerance tolerance);

// Passed, or failed with the first text that is not empty.
Outcome first_miss(const std::vector<std::string>& misses);

}  // namespace areal::vectors
