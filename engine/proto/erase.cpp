#include "engine/proto/erase.h"

namespace areal::proto {
namespace {

template <class T>
concept HasBody = requires(T value) { value.body; };

template <class T>
Erased erase_one(const T& value) {
  Erased erased{to_record(value), {}};
  if constexpr (HasBody<T>) erased.body = value.body;
  return erased;
}

template <class Variant>
struct Restore;

template <class... Ts>
struct Restore<std::variant<Ts...>> {
  static std::optional<std::variant<Ts...>> from(const Erased& erased) {
    std::optional<std::variant<Ts...>> out;
    dispatch_record<Ts...>(erased.record, [&](auto value) {
      if constexpr (HasBody<decltype(value)>) value.body = erased.body;
      out = value;
    });
    return out;
  }
};

}  // namespace

Erased erase(const Input& input) {
  return std::visit([](const auto& value) { return erase_one(value); }, input);
}
Erased erase(const Effect& effect) {
  return std::visit([](const auto& value) { return erase_one(value); }, effect);
}
std::optional<Input> input_of(const Erased& erased) { return Restore<Input>::from(erased); }
std::optional<Effect> effect_of(const Erased& erased) { return Restore<Effect>::from(erased); }

}  // namespace areal::proto
