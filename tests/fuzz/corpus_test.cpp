// Every kept input and every seed of every fuzzed reader, without a fuzzer: what once broke a reader stays mended.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/base/rng.h"
#include "tests/fuzz/targets.h"

namespace areal::fuzz {

// What a failing test says of its parameter.
static void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

namespace {

std::vector<std::filesystem::path> kept_inputs(std::string_view target) {
  const auto folder = std::filesystem::path(AREAL_SOURCE_DIR) / "tests/data/corpus" / target;
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::stable_sort(files);
  return files;
}

Bytes bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Corpus : public ::testing::TestWithParam<Target> {};

TEST_P(Corpus, EveryKeptInputIsSurvived) {
  for (const auto& path : kept_inputs(GetParam().name)) {
    SCOPED_TRACE(path.string());
    GetParam().one(bytes_of(path));
  }
}

TEST_P(Corpus, SeedsAndTheirDamagedCopiesAreSurvived) {
  const std::vector<Bytes> seeds = GetParam().seeds();
  ASSERT_FALSE(seeds.empty());
  Rng rng(1);
  for (const Bytes& seed : seeds) {
    GetParam().one(seed);
    for (int copy = 0; copy < 20 && !seed.empty(); ++copy) {
      Bytes damaged = seed;
      const std::size_t at = rng.draw_below(damaged.size());
      const std::uint64_t bit = rng.draw_below(8);
      damaged[at] ^= static_cast<std::uint8_t>(1U << bit);
      GetParam().one(damaged);
      damaged.resize(at);
      GetParam().one(damaged);
    }
  }
  GetParam().one({});
}

INSTANTIATE_TEST_SUITE_P(All, Corpus, ::testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& given) { return std::string(given.param.name); });

// A folder of inputs that no target reads would be tested by nobody.
TEST(CorpusFolders, BelongToTargets) {
  const auto root = std::filesystem::path(AREAL_SOURCE_DIR) / "tests/data/corpus";
  if (!std::filesystem::is_directory(root)) return;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    EXPECT_NE(find_target(entry.path().filename().string()), nullptr) << entry.path();
  }
}

}  // namespace
}  // namespace areal::fuzz
