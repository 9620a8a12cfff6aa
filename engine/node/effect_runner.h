// Carries out one effect through the ports.
#pragma once
#include "engine/node/ports.h"
#include "engine/proto/effect.h"

namespace areal::node {

void run_effect(SlotId slot, const proto::Effect& effect, Ports& ports);

}  // namespace areal::node
