#include "engine/real/host/checkpoint_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "engine/base/bytes.h"
#include "engine/base/digest.h"
#include "engine/real/host/durable_file.h"

namespace areal::host {
namespace {

constexpr std::uint64_t kMagic = 0x746e'696f'706b;  // "kpoint"; the format is in the upper 16 bits.
constexpr std::uint64_t kFormat = 1;
constexpr std::uint64_t kFirstWord = kMagic | (kFormat << 48);
constexpr std::size_t kHeadBytes = 40;
constexpr std::size_t kChunkWords = 8192;

Digest128 digest_of(std::uint64_t version, std::span<const std::uint64_t> words) {
  return chain_digest(hash_words(std::array{kFirstWord, version, std::uint64_t{words.size()}}), hash_words(words));
}

struct Head {
  std::uint64_t version = 0;
  std::uint64_t count = 0;
  Digest128 digest{};
};

Result<Head> decode_head(std::span<const std::uint8_t> bytes) {
  ByteReader reader(bytes);
  const std::uint64_t first = reader.u64();
  Head head;
  head.version = reader.u64();
  head.count = reader.u64();
  head.digest.high = reader.u64();
  head.digest.low = reader.u64();
  if (!reader.ok()) return Error{Errc::kCorrupt, "too short for a head"};
  if ((first & ~(std::uint64_t{0xffff} << 48)) != kMagic) return Error{Errc::kCorrupt, "no checkpoint"};
  if (first != kFirstWord) return Error{Errc::kUnsupported, fmt::format("format {}, not {}", first >> 48, kFormat)};
  return head;
}

Result<Checkpoint> read_checkpoint(int file, std::uint64_t file_bytes) {
  std::vector<std::uint8_t> chunk(kHeadBytes);
  const auto head_bytes = read_up_to(file, chunk);
  if (!head_bytes) return head_bytes.error();
  const auto head = decode_head(std::span(chunk).first(*head_bytes));
  if (!head) return head.error();
  const std::uint64_t body_bytes = file_bytes - std::min<std::uint64_t>(file_bytes, kHeadBytes);
  // The file says how much memory is needed, not its head, which may be damaged.
  if (body_bytes % 8 != 0 || body_bytes / 8 != head->count) {
    return Error{Errc::kCorrupt, fmt::format("{} bytes of words, its head says {} words", body_bytes, head->count)};
  }
  Checkpoint checkpoint{head->version, {}};
  checkpoint.words.reserve(head->count);
  while (checkpoint.words.size() < head->count) {
    chunk.resize(8 * std::min<std::uint64_t>(kChunkWords, head->count - checkpoint.words.size()));
    const auto got = read_up_to(file, chunk);
    if (!got) return got.error();
    if (*got != chunk.size()) return Error{Errc::kCorrupt, "became shorter while it was read"};
    ByteReader reader(chunk);
    while (!reader.at_end()) checkpoint.words.push_back(reader.u64());
  }
  if (digest_of(checkpoint.version, checkpoint.words) != head->digest) {
    return Error{Errc::kCorrupt, "its digest is another one"};
  }
  return checkpoint;
}

}  // namespace

Status save_checkpoint(const std::filesystem::path& path, std::uint64_t version, std::span<const std::uint64_t> words) {
  auto file = DurableFile::create(path);
  if (!file) return file.error();
  const Digest128 digest = digest_of(version, words);
  ByteWriter writer;
  for (const std::uint64_t word : {kFirstWord, version, std::uint64_t{words.size()}, digest.high, digest.low}) {
    writer.u64(word);
  }
  AREAL_TRY(file->append(writer.view()));
  while (!words.empty()) {
    const auto some = words.first(std::min(words.size(), kChunkWords));
    words = words.subspan(some.size());
    writer.clear();
    for (const std::uint64_t word : some) writer.u64(word);
    AREAL_TRY(file->append(writer.view()));
  }
  return file->commit();
}

Result<Checkpoint> load_checkpoint(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!file.is_open() || ::fstat(file.number(), &info) != 0) return errno_error(path.string());
  auto checkpoint = read_checkpoint(file.number(), static_cast<std::uint64_t>(info.st_size));
  if (!checkpoint) return Error{checkpoint.error().code, path.string() + ": " + checkpoint.error().detail};
  return checkpoint;
}

}  // namespace areal::host
