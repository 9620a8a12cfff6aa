#include "engine/base/running_hash.h"

#if defined(__x86_64__)
// The library picks the widest vectors that the machine has; the values are the same.
#define XXH_STATIC_LINKING_ONLY
#include <xxh_x86dispatch.h>
#else
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

namespace areal {

namespace {

template <class State>
State* state_of(auto& bytes) {
  return reinterpret_cast<State*>(bytes.data());
}

}  // namespace

static_assert(std::is_trivially_copyable_v<XXH3_state_t> && alignof(XXH3_state_t) <= 64);

RunningHash::RunningHash() : state_{} {
  static_assert(sizeof(XXH3_state_t) <= kStateBytes);
  XXH3_128bits_reset(state_of<XXH3_state_t>(state_));
}

void RunningHash::add(std::span<const std::uint64_t> words) {
  XXH3_128bits_update(state_of<XXH3_state_t>(state_), words.data(), words.size_bytes());
}

Digest128 RunningHash::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_of<const XXH3_state_t>(state_));
  return {.high = hash.high64, .low = hash.low64};
}

}  // namespace areal
