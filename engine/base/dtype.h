// Element types of tensors, their sizes and their names as recordings and test vectors spell them.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace areal {

enum class DType : std::uint8_t { kBf16, kF32, kF16, kF64, kI32, kI64, kU8, kBool };

constexpr std::array<std::string_view, 8> enum_names(DType /*tag*/) {
  return {"bfloat16", "float32", "float16", "float64", "int32", "int64", "uint8", "bool"};
}

inline constexpr std::size_t kDTypeCount = 8;

// Bytes of one element.
constexpr std::uint32_t size_of(DType dtype) {
  constexpr std::array<std::uint32_t, kDTypeCount> kSizes{2, 4, 2, 8, 4, 8, 1, 1};
  return kSizes[static_cast<std::size_t>(dtype)];
}

// "bfloat16" or the short "bf16"; nothing for any other word.
constexpr std::optional<DType> parse_dtype(std::string_view text) {
  constexpr std::array<std::string_view, kDTypeCount> kShort{"bf16", "fp32", "fp16", "fp64", "i32", "i64", "u8", "b1"};
  constexpr auto kNames = enum_names(DType{});
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (text == kNames[i] || text == kShort[i]) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace areal
