// Result<T> holds a value or an Error; errors exist only where a caller acts differently on them.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "engine/base/check.h"

namespace areal {

enum class Errc : std::uint8_t { kInvalid, kTimeout, kPeerGone, kCorrupt, kTruncated, kNoMemory, kIo, kUnsupported };

struct Error {
  Errc code = Errc::kInvalid;
  std::string detail;     // For people; no code reads it.
  bool injected = false;  // Set where a fault plan made the error, so that a judge can tell planned from real.
};

struct Unit {};

// Same member names as std::expected where they exist.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  // REQUIRES: has_value().
  T& value() & { return AREAL_CHECK(has_value()), std::get<0>(state_); }
  const T& value() const& { return AREAL_CHECK(has_value()), std::get<0>(state_); }
  T value() && { return AREAL_CHECK(has_value()), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  // REQUIRES: !has_value().
  const Error& error() const& { return AREAL_CHECK(!has_value()), std::get<1>(state_); }
  Error error() && { return AREAL_CHECK(!has_value()), std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<Unit>;

}  // namespace areal

// Returns the error of `expression` from the enclosing function, if there is one.
#define AREAL_TRY(expression)                                                                    \
  do {                                                                                           \
    if (auto areal_result = (expression); !areal_result) return std::move(areal_result).error(); \
  } while (false)
