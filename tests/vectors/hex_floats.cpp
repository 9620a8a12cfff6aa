#include "tests/vectors/hex_floats.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

namespace areal::vectors {

std::uint32_t bits_of_hex(const Json& hex) {
  return static_cast<std::uint32_t>(std::stoul(hex.get<std::string>(), nullptr, 16));
}

std::vector<float> floats_of_hex(const Json& hex) {
  std::vector<float> values;
  for (const Json& item : hex) values.push_back(std::bit_cast<float>(bits_of_hex(item)));
  return values;
}

std::string bits_miss(std::string_view field, const std::vector<float>& wanted, const std::vector<float>& got) {
  if (wanted.size() != got.size()) return fmt::format("{} has {} elements, not {}", field, got.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto wanted_bits = std::bit_cast<std::uint32_t>(wanted[i]);
    const auto got_bits = std::bit_cast<std::uint32_t>(got[i]);
    if (wanted_bits == got_bits || (std::isnan(wanted[i]) && std::isnan(got[i]))) continue;
    return fmt::format("{}[{}]: wanted {:08x}, got {:08x}", field, i, wanted_bits, got_bits);
  }
  return {};
}

std::string list_miss(std::string_view field, const Json& wanted, const Json& got) {
  if (wanted.size() != got.size()) return fmt::format("{} has {} elements, not {}", field, got.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted.at(i) == got.at(i)) continue;
    return fmt::format("{}[{}]: wanted {}, got {}", field, i, wanted.at(i).dump(), got.at(i).dump());
  }
  return {};
}

}  // namespace areal::vectors
