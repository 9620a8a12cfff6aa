// The secret of one run: whoever knows it is a member of the run; it never stands on a command line.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/real/host/handshake.h"

namespace areal::host {

inline constexpr std::size_t kMinSecretBytes = 16;
inline constexpr std::size_t kMaxSecretBytes = 4096;

// Bytes that are wiped when they go.
class Secret {
 public:
  explicit Secret(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}
  Secret(Secret&& other) noexcept = default;
  Secret& operator=(Secret&&) = delete;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret();
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

// From the file `path` if it is not empty, else from the environment variable `variable`. Line ends at the end do not
// count. kInvalid: too short or too long, no such variable; a file that is no plain file, is not the user's or root's
// own, or lets group or others do anything. kIo: the file cannot be read.
Result<Secret> read_secret(const std::string& path, const std::string& variable = "AREAL_SECRET");

// Writes 32 random bytes as hex digits to a new file that only its owner may read. kIo: it cannot, or the file is
// there.
Status make_secret_file(const std::string& path);

// Never the same twice. kIo: the system gives no random bytes.
Result<Nonce> random_nonce();

}  // namespace areal::host
