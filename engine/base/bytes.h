// Fixed-order reading and writing of bytes; the only way to turn a struct into bytes.
//
// Little-endian; variable-length integers are LEB128. A reader never reads past its end: the first failure sticks,
// every later read yields 0, and ok() says so, so that a caller checks once at the end.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace areal {

class ByteWriter {
 public:
  void u8(std::uint8_t value) { bytes_.push_back(value); }
  void u64(std::uint64_t value);
  void varint(std::uint64_t value);
  // Small negative numbers stay small: zigzag, then varint.
  void signed_varint(std::int64_t value);
  void bytes(std::span<const std::uint8_t> value) { bytes_.insert(bytes_.end(), value.begin(), value.end()); }
  // Length, then bytes.
  void text(std::string_view value);

  [[nodiscard]] std::span<const std::uint8_t> view() const { return bytes_; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }
  void clear() { bytes_.clear(); }

 private:
  std::vector<std::uint8_t> bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  std::uint8_t u8();
  std::uint64_t u64();
  std::uint64_t varint();
  std::int64_t signed_varint();
  std::string text();

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  bool need(std::size_t count);

  std::span<const std::uint8_t> rest_;
  bool ok_ = true;
};

}  // namespace areal
