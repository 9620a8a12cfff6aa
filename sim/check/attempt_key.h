// Which attempt of which update a note is about.
#pragma once
#include <compare>

#include "engine/base/ids.h"

namespace areal::sim {

struct AttemptKey {
  Epoch epoch = 0;
  Version version = 0;
  Attempt attempt = 0;
  auto operator<=>(const AttemptKey&) const = default;
};

template <class Said>
AttemptKey key_of(const Said& said) {
  return {said.epoch, said.version, said.attempt};
}

}  // namespace areal::sim
