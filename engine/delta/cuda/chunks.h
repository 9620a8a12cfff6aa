// Tensors cut into chunks of one size, so that one launch of passes over whole tensors covers all of them.
//
// Chunk numbers run through the tensors in order; each tensor's entry knows the number of its first. Pure functions.
#pragma once
#include <cstdint>
#include <span>

namespace areal::delta::cuda {

inline constexpr std::uint32_t kChunkElements = 16384;

// Fills in `first_chunk` of each entry; returns the number of chunks. An empty tensor has none.
template <class Entry>
std::uint64_t number_chunks(std::span<Entry> entries) {
  std::uint64_t chunks = 0;
  for (Entry& entry : entries) {
    entry.first_chunk = chunks;
    chunks += entry.elements / kChunkElements + (entry.elements % kChunkElements == 0 ? 0 : 1);
  }
  return chunks;
}

}  // namespace areal::delta::cuda
