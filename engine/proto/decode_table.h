// One request that an engine's server works on, from its arrival to its answer.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/record.h"
#include "engine/proto/callee.h"
#include "engine/proto/messages.h"

namespace areal::proto {

// kQueued: not begun, decoding is not let. kDecoding: the device makes tokens, or has been asked to stop or park and
// has not said so yet. kParked: frozen in place. kEnded: its answer waits until its earlier segments have been
// reported.
enum class DecodePhase : std::uint8_t { kQueued, kDecoding, kParked, kEnded };
constexpr std::array<std::string_view, 4> enum_names(DecodePhase /*tag*/) {
  return {"queued", "decoding", "parked", "ended"};
}

struct Decode {
  DecodePhase phase = DecodePhase::kQueued;
  RequestKey request;  // Whom to answer.
  SampleId sample;
  Version pinned = 0;            // No older weights may serve it.
  std::uint64_t budget = 0;      // Tokens it may make here.
  std::uint64_t made = 0;        // Tokens of the segments that were closed.
  Version version = 0;           // Of the weights that make its present segment.
  std::uint32_t closes_due = 0;  // Freezes that the device has not answered with a closed segment yet.
  std::uint32_t reports = 0;     // Segment reports without answer.
  bool stopping = false;         // Was asked to stop.
  bool unwanted = false;         // The pool asked anew for the same sample: nobody waits for this one.
  Record answer;                 // In kEnded.
  AREAL_FIELDS(phase, request, sample, pinned, budget, made, version, closes_due, reports, stopping, unwanted, answer)
};

// How a segment ended. `made` are all tokens of the request so far.
constexpr SegmentEnd segment_end(const port::ComputeDone& done, std::uint64_t made, std::uint64_t budget) {
  if (done.outcome == Outcome::kAborted) return SegmentEnd::kAborted;
  if (done.outcome != Outcome::kOk) return SegmentEnd::kFailed;
  if (done.total == 1) return SegmentEnd::kFrozen;  // More follows.
  return made >= budget ? SegmentEnd::kLength : SegmentEnd::kStop;
}

}  // namespace areal::proto
