// HMAC-SHA256 under one key (OpenSSL), and comparison in constant time.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

namespace areal::host {

using Mac256 = std::array<std::uint8_t, 32>;

// A key, ready to use. It is wiped when it goes. Not thread-safe.
class MacKey {
 public:
  explicit MacKey(std::span<const std::uint8_t> key);
  MacKey(const MacKey& other);
  MacKey& operator=(const MacKey& other);
  MacKey(MacKey&&) noexcept;
  MacKey& operator=(MacKey&&) noexcept;
  ~MacKey();

  // Over the parts one after the other; parts of varying length are for the caller to keep apart.
  [[nodiscard]] Mac256 mac(std::initializer_list<std::span<const std::uint8_t>> parts) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Takes the same time wherever the first difference is. False if the sizes differ.
bool equal_secretly(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b);

}  // namespace areal::host
