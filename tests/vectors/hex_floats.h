// fp32 and bf16 values as vectors spell them: bit patterns in hex.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/vectors/registry.h"

namespace areal::vectors {

std::uint32_t bits_of_hex(const Json& hex);

std::vector<float> floats_of_hex(const Json& hex);

// The first element that is not `wanted` bit for bit, or an empty text; any NaN is as good as any other.
std::string bits_miss(std::string_view field, const std::vector<float>& wanted, const std::vector<float>& got);

// The same for any list of numbers or words.
std::string list_miss(std::string_view field, const Json& wanted, const Json& got);

}  // namespace areal::vectors
