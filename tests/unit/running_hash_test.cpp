// Words hashed in pieces are the words hashed at once.
#include "engine/base/running_hash.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "engine/base/rng.h"

namespace areal::test {
namespace {

TEST(RunningHash, PiecesDoNotShow) {
  std::vector<std::uint64_t> words(5000);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = mix_words(i, 1);
  for (const std::size_t size : {0U, 1U, 2U, 30U, 31U, 32U, 33U, 128U, 129U, 1000U, 5000U}) {
    const std::span<const std::uint64_t> all(words.data(), size);
    for (const std::size_t piece : {1U, 7U, 32U, 100U, 5000U}) {
      RunningHash hash;
      for (auto rest = all; !rest.empty(); rest = rest.subspan(std::min(piece, rest.size()))) {
        hash.add(rest.first(std::min(piece, rest.size())));
      }
      EXPECT_EQ(to_hex(hash.digest()), to_hex(hash_words(all))) << size << " words by " << piece;
    }
  }
}

TEST(RunningHash, CopiesGoOnByThemselves) {
  RunningHash hash;
  hash.add(std::vector<std::uint64_t>(100, 7));
  const Digest128 before = hash.digest();
  RunningHash copy = hash;
  copy.add(std::vector<std::uint64_t>(3, 1));
  EXPECT_EQ(hash.digest(), before);
  EXPECT_NE(copy.digest(), before);
}

}  // namespace
}  // namespace areal::test
