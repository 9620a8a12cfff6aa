// What is fuzzed: readers of bytes that come from outside. One function a reader, run by libFuzzer and by a fast test.
//
// A function must return for every input; a broken promise is an AREAL_CHECK, which aborts. Seeds are sound inputs to
// start from, made by the program so that they follow the formats. Pure functions but for scratch files.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace areal::fuzz {

using Bytes = std::vector<std::uint8_t>;
using View = std::span<const std::uint8_t>;

struct Target {
  std::string_view name;
  void (*one)(View input);
  std::vector<Bytes> (*seeds)();
};

// All of them: frames, handshake, message, scenario, block, recording, rows, delta.
std::span<const Target> targets();
// Null if there is none of that name.
const Target* find_target(std::string_view name);

void fuzz_frames(View input);
std::vector<Bytes> frames_seeds();
void fuzz_handshake(View input);
std::vector<Bytes> handshake_seeds();
void fuzz_message(View input);
std::vector<Bytes> message_seeds();
void fuzz_scenario(View input);
std::vector<Bytes> scenario_seeds();
void fuzz_block(View input);
std::vector<Bytes> block_seeds();
void fuzz_recording(View input);
std::vector<Bytes> recording_seeds();
void fuzz_rows(View input);
std::vector<Bytes> rows_seeds();
void fuzz_delta(View input);
std::vector<Bytes> delta_seeds();

}  // namespace areal::fuzz
