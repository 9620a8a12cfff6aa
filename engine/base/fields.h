// One description of a struct's fields, from which its words, digest, text, snapshot and rules are made.
//
//   struct PauseRequest {
//     PauseMode mode = PauseMode::kAbortResubmit;
//     AREAL_FIELDS(mode)
//   };
//
// visit_fields(self, visitor) calls visitor("mode", self.mode) in order. A field is a whole number, a bool, an enum, an
// Id, a time, a Digest128, or (in states, not in records) another described struct, a vector, an optional or a Table.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "engine/base/digest.h"
#include "engine/base/ids.h"
#include "engine/base/time.h"

#define AREAL_PARENS ()
#define AREAL_EXPAND(...) AREAL_EXPAND3(AREAL_EXPAND3(AREAL_EXPAND3(AREAL_EXPAND3(__VA_ARGS__))))
#define AREAL_EXPAND3(...) AREAL_EXPAND2(AREAL_EXPAND2(AREAL_EXPAND2(AREAL_EXPAND2(__VA_ARGS__))))
#define AREAL_EXPAND2(...) AREAL_EXPAND1(AREAL_EXPAND1(AREAL_EXPAND1(AREAL_EXPAND1(__VA_ARGS__))))
#define AREAL_EXPAND1(...) __VA_ARGS__
#define AREAL_FOR_EACH(macro, ...) __VA_OPT__(AREAL_EXPAND(AREAL_FOR_EACH_STEP(macro, __VA_ARGS__)))
#define AREAL_FOR_EACH_STEP(macro, first, ...) \
  macro(first) __VA_OPT__(AREAL_FOR_EACH_AGAIN AREAL_PARENS(macro, __VA_ARGS__))
#define AREAL_FOR_EACH_AGAIN() AREAL_FOR_EACH_STEP
#define AREAL_VISIT_FIELD(name) visit(std::string_view(#name), self.name);

#define AREAL_FIELDS(...)                                                                             \
  template <class Self, class Visitor>                                                                \
  static constexpr void visit_fields([[maybe_unused]] Self& self, [[maybe_unused]] Visitor&& visit) { \
    AREAL_FOR_EACH(AREAL_VISIT_FIELD, __VA_ARGS__)                                                    \
  }

namespace areal {

struct IgnoreFields {
  template <class T>
  constexpr void operator()(std::string_view /*name*/, T& /*value*/) const {}
};

template <class T>
concept Described = requires(T& value) { T::visit_fields(value, IgnoreFields{}); };

template <class T>
struct IsId : std::false_type {};
template <class Tag>
struct IsId<Id<Tag>> : std::true_type {};

// A field that is one 64-bit word.
template <class T>
concept WordField =
    std::integral<T> || std::is_enum_v<T> || IsId<T>::value || std::same_as<T, Instant> || std::same_as<T, Duration>;

template <WordField T>
constexpr std::uint64_t to_word(T value) {
  if constexpr (IsId<T>::value) {
    return value.value;
  } else if constexpr (std::same_as<T, Instant> || std::same_as<T, Duration>) {
    return static_cast<std::uint64_t>(value.ns);
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

template <WordField T>
constexpr T from_word(std::uint64_t word) {
  if constexpr (IsId<T>::value) {
    return T{word};
  } else if constexpr (std::same_as<T, Instant> || std::same_as<T, Duration>) {
    return T{static_cast<std::int64_t>(word)};
  } else if constexpr (std::same_as<T, bool>) {
    return word != 0;
  } else {
    return static_cast<T>(word);
  }
}

// Names of an enum's values, in order from 0: found by argument-dependent lookup as `enum_names(E)`.
template <class T>
concept NamedEnum = std::is_enum_v<T> && requires(T value) {
  { enum_names(value)[0] } -> std::convertible_to<std::string_view>;
};

template <NamedEnum T>
constexpr std::string_view to_text(T value) {
  constexpr auto kNames = enum_names(T{});
  static_assert(!kNames.back().empty(), "fewer names than the array says: later values have the names of others");
  const auto index = static_cast<std::size_t>(value);
  return index < kNames.size() ? kNames[index] : std::string_view("?");
}

}  // namespace areal
