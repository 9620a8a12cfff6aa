#include "engine/real/host/file_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "engine/base/bytes.h"
#include "engine/real/host/durable_file.h"

namespace areal::host {
namespace {

using port::Outcome;

constexpr std::uint64_t kFirstWord = 0x0001'6572'6f74'7361;  // "astore", format 1.
constexpr std::size_t kFileBytes = 48;

Digest128 check_of(std::uint64_t key, const Digest128& value) {
  return hash_words(std::array{kFirstWord, key, value.high, value.low});
}

std::vector<std::uint8_t> encode(std::uint64_t key, const Digest128& value) {
  const Digest128 check = check_of(key, value);
  ByteWriter writer;
  for (const std::uint64_t word : {kFirstWord, key, value.high, value.low, check.high, check.low}) writer.u64(word);
  return writer.take();
}

std::optional<Digest128> decode(std::uint64_t key, std::span<const std::uint8_t> bytes) {
  if (bytes.size() != kFileBytes) return std::nullopt;
  ByteReader reader(bytes);
  if (reader.u64() != kFirstWord || reader.u64() != key) return std::nullopt;
  const std::uint64_t high = reader.u64();
  const Digest128 value{high, reader.u64()};
  const std::uint64_t check_high = reader.u64();
  const Digest128 check{check_high, reader.u64()};
  if (check != check_of(key, value)) return std::nullopt;
  return value;
}

StoreAnswer failed(const Error& error) {
  return {error.code == Errc::kTimeout ? Outcome::kTimedOut : Outcome::kFailed, {}, error.detail};
}

}  // namespace

Result<FileStore> FileStore::open(const std::filesystem::path& folder, Duration patience) {
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) return errno_error(folder.string());
  FileStore store(folder, patience);
  const auto lock = store.lock(LOCK_SH);
  if (!lock) return lock.error();
  return store;
}

std::filesystem::path FileStore::file_of(std::uint64_t key) const { return folder_ / fmt::format("{:016x}", key); }

Result<Descriptor> FileStore::lock(int how) const {
  using Clock = std::chrono::steady_clock;
  const std::filesystem::path path = folder_ / "lock";
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file.is_open()) return errno_error(path.string());
  const Clock::time_point deadline = Clock::now() + std::chrono::nanoseconds(patience_.ns);
  while (::flock(file.number(), how | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return errno_error(path.string());
    if (Clock::now() >= deadline) return Error{Errc::kTimeout, path.string() + ": others hold the store"};
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return file;
}

StoreAnswer FileStore::read(std::uint64_t key) const {
  const auto bytes = read_file(file_of(key), kFileBytes);
  if (!bytes) return failed(bytes.error());
  const auto& content = *bytes;
  if (!content) return {Outcome::kRefused, {}, {}};
  const auto value = decode(key, *content);
  if (!value) return {Outcome::kFailed, {}, file_of(key).string() + ": damaged"};
  return {Outcome::kOk, *value, {}};
}

StoreAnswer FileStore::put_if(std::uint64_t key, const Digest128& expected, const Digest128& value) const {
  const auto held = lock(LOCK_EX);
  if (!held) return failed(held.error());
  StoreAnswer present = read(key);
  if (present.outcome != Outcome::kOk && present.outcome != Outcome::kRefused) return present;
  if (present.value != expected) return {Outcome::kMismatch, present.value, {}};
  const Status written = replace_file(file_of(key), encode(key, value));
  if (!written) return failed(written.error());
  return {Outcome::kOk, value, {}};
}

StoreAnswer FileStore::get(std::uint64_t key) const {
  const auto held = lock(LOCK_SH);
  if (!held) return failed(held.error());
  return read(key);
}

}  // namespace areal::host
