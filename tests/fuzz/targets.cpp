#include "tests/fuzz/targets.h"

#include <algorithm>
#include <array>

namespace areal::fuzz {
namespace {

constexpr std::array<Target, 8> kTargets{{{"frames", fuzz_frames, frames_seeds},
                                          {"handshake", fuzz_handshake, handshake_seeds},
                                          {"message", fuzz_message, message_seeds},
                                          {"scenario", fuzz_scenario, scenario_seeds},
                                          {"block", fuzz_block, block_seeds},
                                          {"recording", fuzz_recording, recording_seeds},
                                          {"rows", fuzz_rows, rows_seeds},
                                          {"delta", fuzz_delta, delta_seeds}}};

}  // namespace

std::span<const Target> targets() { return kTargets; }

const Target* find_target(std::string_view name) {
  const auto place = std::ranges::find(kTargets, name, &Target::name);
  return place == kTargets.end() ? nullptr : &*place;
}

}  // namespace areal::fuzz
