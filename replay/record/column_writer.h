// A growing column of numbers; writing one is a few instructions. Not thread-safe.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace areal::record {

class ColumnWriter {
 public:
  ColumnWriter() : bytes_(kFirst), end_(bytes_.data()), limit_(bytes_.data() + bytes_.size() - kLongest) {}
  ColumnWriter(const ColumnWriter&) = delete;
  ColumnWriter& operator=(const ColumnWriter&) = delete;

  // Little-endian base 128, as ByteReader reads it.
  void varint(std::uint64_t value) {
    std::uint8_t* out = room();
    while (value >= 0x80) {
      *out++ = static_cast<std::uint8_t>(value | 0x80);
      value >>= 7;
    }
    *out++ = static_cast<std::uint8_t>(value);
    end_ = out;
  }
  void signed_varint(std::int64_t value) {
    varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void u64(std::uint64_t value) {
    std::uint8_t* out = room();
    for (int i = 0; i < 8; ++i) out[i] = static_cast<std::uint8_t>(value >> 8 * i);
    end_ = out + 8;
  }

  [[nodiscard]] std::span<const std::uint8_t> view() const { return {bytes_.data(), size()}; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(end_ - bytes_.data()); }
  void clear() { end_ = bytes_.data(); }

 private:
  static constexpr std::size_t kFirst = 4096;
  static constexpr std::size_t kLongest = 10;

  std::uint8_t* room() { return end_ <= limit_ ? end_ : grow(); }
  std::uint8_t* grow() {
    const std::size_t used = size();
    bytes_.resize(bytes_.size() * 2);
    limit_ = bytes_.data() + bytes_.size() - kLongest;
    return end_ = bytes_.data() + used;
  }

  std::vector<std::uint8_t> bytes_;
  std::uint8_t* end_;
  std::uint8_t* limit_;  // Up to here the longest number fits.
};

}  // namespace areal::record
