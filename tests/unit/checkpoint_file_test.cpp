// Checkpoints come back as they were saved or not at all.
#include "engine/real/host/checkpoint_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "engine/base/rng.h"
#include "engine/real/host/durable_file.h"
#include "tests/unit/temp_folder.h"

namespace areal::host {
namespace {

using test::TempFolder;

std::vector<std::uint64_t> words_of(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint64_t> words(count);
  for (std::size_t i = 0; i < count; ++i) words[i] = mix_words(seed, i);
  return words;
}

std::vector<char> bytes_of(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_bytes(const std::filesystem::path& path, std::span<const char> bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(CheckpointFile, ComesBackAsSaved) {
  const TempFolder folder;
  for (const std::size_t count : {0U, 1U, 8192U, 8193U, 30000U}) {
    const auto path = folder.path() / "slot-0";
    const Checkpoint saved{count + 5, words_of(count, count)};
    ASSERT_TRUE(save_checkpoint(path, saved.version, saved.words).has_value());
    const auto loaded = load_checkpoint(path);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().detail;
    EXPECT_EQ(*loaded, saved);
  }
}

TEST(CheckpointFile, EachDamageIsRefusedWithAReason) {
  const TempFolder folder;
  const auto path = folder.path() / "slot-0";
  ASSERT_TRUE(save_checkpoint(path, 3, words_of(40, 1)).has_value());
  const std::vector<char> good = bytes_of(path);
  ASSERT_EQ(good.size(), 45U * 8);
  const auto error_of = [&path](std::span<const char> bytes) {
    write_bytes(path, bytes);
    const auto loaded = load_checkpoint(path);
    return loaded ? Error{Errc::kInvalid, "it was read"} : loaded.error();
  };
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char flipped : {char{1}, static_cast<char>(0x80), static_cast<char>(0xff)}) {
      auto bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ flipped);
      const Error error = error_of(bytes);
      EXPECT_EQ(error.code, at == 6 || at == 7 ? Errc::kUnsupported : Errc::kCorrupt) << at << ": " << error.detail;
    }
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(error_of(std::span(good).first(size)).code, Errc::kCorrupt) << size;
  }
  for (const std::size_t more : {1U, 8U}) {
    auto bytes = good;
    bytes.resize(good.size() + more);
    EXPECT_EQ(error_of(bytes).code, Errc::kCorrupt);
  }
  // Two words that changed places, and a tail that never came to the disk.
  auto swapped = good;
  std::swap_ranges(swapped.begin() + 40, swapped.begin() + 48, swapped.begin() + 48);
  EXPECT_EQ(error_of(swapped).code, Errc::kCorrupt);
  auto torn = good;
  std::fill(torn.begin() + 200, torn.end(), '\0');
  EXPECT_EQ(error_of(torn).code, Errc::kCorrupt);

  write_bytes(path, good);
  EXPECT_TRUE(load_checkpoint(path).has_value());
  EXPECT_EQ(load_checkpoint(folder.path() / "slot-1").error().code, Errc::kIo);
}

TEST(CheckpointFile, AnUnfinishedSaveLeavesTheOneBefore) {
  const TempFolder folder;
  const auto path = folder.path() / "slot-0";
  ASSERT_TRUE(save_checkpoint(path, 1, words_of(10, 1)).has_value());
  {
    auto unfinished = DurableFile::create(path);
    ASSERT_TRUE(unfinished.has_value());
    const std::vector<std::uint8_t> half(100, 9);
    ASSERT_TRUE(unfinished->append(half).has_value());
    EXPECT_EQ(load_checkpoint(path)->version, 1U);
    // Two writers would mix their words.
    EXPECT_EQ(save_checkpoint(path, 2, words_of(10, 2)).error().code, Errc::kIo);
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "slot-0.new"));
  // What a killed writer left is longer than what comes now.
  write_bytes(folder.path() / "slot-0.new", std::vector<char>(5000, 7));
  ASSERT_TRUE(save_checkpoint(path, 3, words_of(10, 3)).has_value());
  EXPECT_EQ(*load_checkpoint(path), (Checkpoint{3, words_of(10, 3)}));
}

TEST(CheckpointFile, AFullOrMissingFolderIsAnError) {
  const TempFolder folder;
  EXPECT_EQ(save_checkpoint(folder.path() / "none" / "slot-0", 1, words_of(1, 1)).error().code, Errc::kIo);
  // A folder in the place of the file: everything is written, and the last step fails.
  std::filesystem::create_directory(folder.path() / "slot-0");
  EXPECT_EQ(save_checkpoint(folder.path() / "slot-0", 1, words_of(1, 1)).error().code, Errc::kIo);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "slot-0.new"));
}

}  // namespace
}  // namespace areal::host
