#include "engine/algo/sampling_seed.h"

#include <fmt/format.h>

#include "engine/algo/sha256.h"

namespace areal::algo {

std::uint32_t sampling_seed(std::string_view identity, std::uint64_t index) {
  return sha256(fmt::format("{}:{}", identity, index)).front() & 0x7FFFFFFFU;
}

std::uint32_t process_seed(std::uint64_t base, std::string_view key) {
  return static_cast<std::uint32_t>(base + sha256(key).back());
}

std::uint32_t shuffle_seed(std::uint64_t base, std::uint64_t counter) {
  return sha256(fmt::format("AReaL-seed{}_{}", base, counter)).back();
}

std::uint32_t SessionSeeds::next(std::optional<std::uint32_t> own) {
  const std::uint64_t index = next_index_++;
  return own.value_or(sampling_seed(identity_, index));
}

Status check_own_seed(bool deterministic, std::uint64_t samples, std::optional<std::uint64_t> seed) {
  if (deterministic && samples > 1 && seed) {
    return Error{Errc::kInvalid,
                 fmt::format("seed {} for {} samples of one prompt: all would be the same", *seed, samples)};
  }
  return Unit{};
}

}  // namespace areal::algo
