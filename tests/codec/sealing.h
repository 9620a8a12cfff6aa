// Makes the checks of a changed message fit again: damage that only its structure can show.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/delta/wire/message.h"

namespace areal::tests {

// Leaves what is no message as it is.
inline void seal(std::vector<std::uint8_t>& bytes) {
  using namespace delta::wire;  // NOLINT(google-build-using-namespace): the subject of this file
  if (bytes.size() < std::size_t{8} * kHeaderUnits || bytes.size() % 8 != 0) return;
  const std::uint64_t there = bytes.size() / 8;
  const std::uint64_t tensors = load_unit(bytes, 2);
  const std::uint64_t blocks = load_unit(bytes, 4);
  const std::uint64_t units = load_unit(bytes, 5);
  if (tensors > there || blocks > there || units > there) return;
  const std::uint64_t first_row = kHeaderUnits + 2 * tensors;
  const std::uint64_t first = first_row + 2 * blocks;
  if (first + units != there) return;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    const std::uint64_t begin = load_unit(bytes, first_row + 2 * block + 1) & 0xFFFFFFFFU;
    const std::uint64_t next = block + 1 < blocks ? load_unit(bytes, first_row + 2 * block + 3) & 0xFFFFFFFFU : units;
    const std::uint64_t end = std::min(next, units);
    std::uint64_t sum = 0;
    for (std::uint64_t i = begin; i < end; ++i) sum += check_part(i - begin, load_unit(bytes, first + i));
    store_unit(bytes, first_row + 2 * block + 1, begin | (std::uint64_t{fold_check(sum)} << 32));
  }
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < first; ++i) {
    if (i != kHeaderUnits - 1) sum += check_part(i, load_unit(bytes, i));
  }
  store_unit(bytes, kHeaderUnits - 1, sum);
}

}  // namespace areal::tests
