#include "engine/real/host/mac.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <utility>

#include "engine/base/check.h"

namespace areal::host {
namespace {

struct FreeContext {
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MAC_CTX, FreeContext>;

// Without HMAC, which only a broken or crippled OpenSSL lacks, nothing can be trusted: the checks here stop the
// process.
Context make_context(std::span<const std::uint8_t> key) {
  EVP_MAC* algorithm = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  AREAL_CHECK(algorithm != nullptr);
  Context context(EVP_MAC_CTX_new(algorithm));
  EVP_MAC_free(algorithm);
  AREAL_CHECK(context != nullptr);
  std::array<char, 7> digest{"SHA256"};
  const std::array<OSSL_PARAM, 2> parameters{OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
                                             OSSL_PARAM_construct_end()};
  AREAL_CHECK(EVP_MAC_init(context.get(), key.data(), key.size(), parameters.data()) == 1);
  return context;
}

Context copy_context(const Context& context) {
  Context copy(EVP_MAC_CTX_dup(context.get()));
  AREAL_CHECK(copy != nullptr);
  return copy;
}

}  // namespace

struct MacKey::Impl {
  Context start;  // Keyed and fed nothing.
};

MacKey::MacKey(std::span<const std::uint8_t> key) : impl_(new Impl{make_context(key)}) {}
MacKey::MacKey(const MacKey& other) : impl_(new Impl{copy_context(other.impl_->start)}) {}
MacKey& MacKey::operator=(const MacKey& other) {
  MacKey copy(other);
  return *this = std::move(copy);
}
MacKey::MacKey(MacKey&&) noexcept = default;
MacKey& MacKey::operator=(MacKey&&) noexcept = default;
MacKey::~MacKey() = default;

Mac256 MacKey::mac(std::initializer_list<std::span<const std::uint8_t>> parts) const {
  const Context context = copy_context(impl_->start);
  for (const std::span<const std::uint8_t> part : parts) {
    AREAL_CHECK(EVP_MAC_update(context.get(), part.data(), part.size()) == 1);
  }
  Mac256 mac{};
  std::size_t size = 0;
  AREAL_CHECK(EVP_MAC_final(context.get(), mac.data(), &size, mac.size()) == 1);
  AREAL_CHECK(size == mac.size());
  return mac;
}

bool equal_secretly(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace areal::host
