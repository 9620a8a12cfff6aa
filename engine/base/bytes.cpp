#include "engine/base/bytes.h"

namespace areal {

void ByteWriter::u64(std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<std::uint8_t>(value >> shift));
}

void ByteWriter::varint(std::uint64_t value) {
  while (value >= 0x80) {
    bytes_.push_back(static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  bytes_.push_back(static_cast<std::uint8_t>(value));
}

void ByteWriter::signed_varint(std::int64_t value) {
  varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

void ByteWriter::text(std::string_view value) {
  varint(value.size());
  bytes_.insert(bytes_.end(), value.begin(), value.end());
}

bool ByteReader::need(std::size_t count) {
  if (ok_ && rest_.size() >= count) return true;
  ok_ = false;
  rest_ = {};
  return false;
}

std::uint8_t ByteReader::u8() {
  if (!need(1)) return 0;
  const std::uint8_t value = rest_[0];
  rest_ = rest_.subspan(1);
  return value;
}

std::uint64_t ByteReader::u64() {
  if (!need(8)) return 0;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) value |= std::uint64_t{rest_[i]} << (8 * i);
  rest_ = rest_.subspan(8);
  return value;
}

std::uint64_t ByteReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const std::uint8_t byte = u8();
    if (!ok_) return 0;
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) {
      const bool overflows = shift == 63 && byte > 1;
      if (overflows) ok_ = false;
      return overflows ? 0 : value;
    }
  }
  ok_ = false;
  return 0;
}

std::int64_t ByteReader::signed_varint() {
  const std::uint64_t value = varint();
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

std::string ByteReader::text() {
  const std::uint64_t size = varint();
  if (!need(size)) return {};
  std::string value(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(size));
  rest_ = rest_.subspan(size);
  return value;
}

}  // namespace areal
