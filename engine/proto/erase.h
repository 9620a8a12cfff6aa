// Inputs and effects in erased form and back: a record, and the body of those that carry one.
#pragma once
#include <optional>

#include "engine/proto/effect.h"
#include "engine/proto/input.h"

namespace areal::proto {

struct Erased {
  Record record;
  Record body;  // Of a message, tell, send or note; kind 0 otherwise.
  AREAL_FIELDS(record, body)
};

Erased erase(const Input& input);
Erased erase(const Effect& effect);

// Nothing if `erased.record` is not of a kind of the variant.
std::optional<Input> input_of(const Erased& erased);
std::optional<Effect> effect_of(const Erased& erased);

}  // namespace areal::proto
