// A described struct as little-endian words in bytes, and back; only the one encoding of a value is taken.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/state.h"

namespace areal::host {

template <Described T>
std::vector<std::uint8_t> encode_fields(const T& value) {
  StateWriter words;
  words.value(value);
  ByteWriter bytes;
  for (const std::uint64_t word : words.words()) bytes.u64(word);
  return bytes.take();
}

// Nothing if `bytes` are not what encode_fields() makes of some T: a number too large for its field, bits beside a
// record's head, a missing or an extra byte.
template <Described T>
std::optional<T> decode_fields(std::span<const std::uint8_t> bytes) {
  if (bytes.size() % sizeof(std::uint64_t) != 0) return std::nullopt;
  std::vector<std::uint64_t> words;
  words.reserve(bytes.size() / sizeof(std::uint64_t));
  for (ByteReader reader(bytes); !reader.at_end();) words.push_back(reader.u64());
  StateReader reader(words);
  T value{};
  reader.value(value);
  if (!reader.ok() || !reader.at_end()) return std::nullopt;
  StateWriter again;
  again.value(value);
  if (!std::ranges::equal(again.words(), words)) return std::nullopt;
  return value;
}

}  // namespace areal::host
