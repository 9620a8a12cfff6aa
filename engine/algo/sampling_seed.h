// Seeds that are derived from what is sampled, so that a run samples the same again.
//
// Sampling: the first four bytes, big-endian, of SHA-256("identity:index"), without the sign bit; identity is the
// task's id, or "task:sample" for a member of a group, and leaves out what differs from session to session. The index
// counts a session's requests as they arrive: seeds repeat only where requests of one session come one after the other.
// Process: (base + SHA-256(key) mod 2^32) mod 2^32, key "trainer<rank>". Shuffles:
// SHA-256("AReaL-seed<base>_<counter>") mod 2^32. Pure functions, and one counter that is not safe to share between
// threads. Source: deterministic sampling and seeding of AReaL.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace areal::algo {

std::uint32_t sampling_seed(std::string_view identity, std::uint64_t index);
// Taken mod 2^32, because some generators refuse a larger seed.
std::uint32_t process_seed(std::uint64_t base, std::string_view key);
std::uint32_t shuffle_seed(std::uint64_t base, std::uint64_t counter);

// The seeds of the requests of one session. Every request takes an index, also one that brings its own seed.
class SessionSeeds {
 public:
  explicit SessionSeeds(std::string_view identity) : identity_(identity) {}
  // `own`: the seed that the request asks for, which then wins.
  std::uint32_t next(std::optional<std::uint32_t> own = std::nullopt);
  [[nodiscard]] std::uint64_t reserved() const { return next_index_; }

 private:
  std::string identity_;
  std::uint64_t next_index_ = 0;
};

// kInvalid: deterministic sampling with a seed of the user's own for several samples of one prompt, which would then
// all be the same.
Status check_own_seed(bool deterministic, std::uint64_t samples, std::optional<std::uint64_t> seed);

}  // namespace areal::algo
