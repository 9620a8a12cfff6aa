#include "engine/real/host/secret.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "engine/base/bytes.h"
#include "engine/real/host/descriptor.h"

namespace areal::host {
namespace {

Result<Secret> checked(std::vector<std::uint8_t> bytes, const std::string& source) {
  while (!bytes.empty() && (bytes.back() == '\n' || bytes.back() == '\r')) bytes.pop_back();
  Secret secret(std::move(bytes));
  const std::size_t size = secret.bytes().size();
  if (size < kMinSecretBytes || size > kMaxSecretBytes) {
    return Error{Errc::kInvalid, source + ": a secret has 16 to 4096 bytes"};
  }
  return secret;
}

// Looks at the open file, so that it cannot be another one than is read.
Status check_owner_only(int number, const std::string& path) {
  struct stat info{};
  if (::fstat(number, &info) != 0) return errno_error(path);
  if (!S_ISREG(info.st_mode)) return Error{Errc::kInvalid, path + ": a secret is a plain file"};
  if (info.st_uid != ::geteuid() && info.st_uid != 0) return Error{Errc::kInvalid, path + ": belongs to another user"};
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Error{Errc::kInvalid, path + ": others may use it; chmod 600 it and make a new secret"};
  }
  return Unit{};
}

Result<Secret> read_file(const std::string& path) {
  // O_NONBLOCK: a pipe without a writer must not hang the start.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return errno_error(path);
  AREAL_TRY(check_owner_only(file.number(), path));
  std::vector<std::uint8_t> bytes(kMaxSecretBytes + 3);  // A line end, and a byte that shows that it is too long.
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::read(file.number(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(path);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  bytes.resize(size);
  return checked(std::move(bytes), path);
}

}  // namespace

Secret::~Secret() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

Result<Secret> read_secret(const std::string& path, const std::string& variable) {
  if (!path.empty()) return read_file(path);
  const char* value = std::getenv(variable.c_str());  // NOLINT(concurrency-mt-unsafe): at start, before any thread
  if (value == nullptr) return Error{Errc::kInvalid, "no secret: neither a file nor the variable " + variable};
  const std::string_view text(value);
  return checked({text.begin(), text.end()}, variable);
}

Status make_secret_file(const std::string& path) {
  std::array<std::uint8_t, 32> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) return Error{Errc::kIo, "no random bytes"};
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : random) text += {kDigits[byte >> 4], kDigits[byte & 15]};
  text += '\n';
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file.is_open()) return errno_error(path);
  const ssize_t written = ::write(file.number(), text.data(), text.size());
  const bool is_whole = written == static_cast<ssize_t>(text.size());
  OPENSSL_cleanse(random.data(), random.size());
  OPENSSL_cleanse(text.data(), text.size());
  if (!is_whole) return errno_error(path);
  return Unit{};
}

Result<Nonce> random_nonce() {
  std::array<std::uint8_t, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return Error{Errc::kIo, "no random bytes"};
  Nonce nonce{};
  ByteReader reader(bytes);
  for (std::uint64_t& word : nonce) word = reader.u64();
  return nonce;
}

}  // namespace areal::host
