// How the lines of a block are taken apart: a shape for each line, and columns for what the shape leaves open.
//
// A shape says what kind of line it is, what of it is as predicted, and which words of its records differ from the last
// record of that kind. A block has few shapes: each is stored once, lines name it by number. Values of one meaning
// stand together in a column, so that they pack well. Both sides predict from the same memory, empty at the start of a
// block.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "engine/port/trace_sink.h"

namespace areal::record {

// In the order in which they stand in a block.
enum class Column : std::uint8_t {
  kShapes,   // Each new shape, where a line first has it: two numbers.
  kShapeOf,  // Each line: the number of its shape. The number that is next is a new shape's.
  kSeqs,     // Difference to the next.
  kCauses,   // How far back, see cause_code().
  kNodes,    // Difference to the line before.
  kSlots,
  kIncarnations,  // Difference to the last of that node.
  kLamports,      // Difference to one more than the last of that node.
  kTimes,         // Difference to the event before.
  kRules,
  kWords,     // Difference to the same word of the last record of that kind; 0: the word is in kWhole.
  kStreams,   // Of decisions and of new names.
  kOrdinals,  // Of decisions, where not one more than the last of that stream.
  kBounds,    // Where another than the last of that stream.
  kChosen,    // Where not 0.
  kNames,     // Of streams.
  kWhole,     // Words of eight bytes that do not get smaller: digests.
};
inline constexpr std::size_t kColumns = 17;

enum class LineKind : std::uint8_t { kEvent, kState, kStream, kDecision };

// What one record of a line is like.
struct RecordShape {
  std::uint64_t kind = 0;
  std::uint64_t size = 0;
  std::uint64_t changed = 0;  // A bit for each word that differs.
};

// A line's shape as two numbers: small ones for common lines.
struct LineShape {
  std::uint64_t head = 0;  // Bits 0-1 LineKind; the rest by kind, see below; of events also the record's shape.
  std::uint64_t body = 0;  // Of events.
  bool operator==(const LineShape&) const = default;
};

// Of all lines but decisions and names: node and slot are those of the line before.
inline constexpr std::uint64_t kSamePlace = 0x04;
// Of states: the digest is the last of that node and slot.
inline constexpr std::uint64_t kSameState = 0x08;
// Of decisions.
inline constexpr std::uint64_t kNextOrdinal = 0x04;
inline constexpr std::uint64_t kSameBound = 0x08;
inline constexpr std::uint64_t kChoseZero = 0x10;
// Of events: what is stored because it is not as predicted; what the event is stands in bits 3 and 4.
inline constexpr int kWhatShift = 3;
inline constexpr std::uint64_t kOddSeq = 0x20;
inline constexpr std::uint64_t kOddCause = 0x40;
inline constexpr std::uint64_t kOddIncarnation = 0x80;
inline constexpr std::uint64_t kOddLamport = 0x100;
inline constexpr std::uint64_t kOddTime = 0x200;
inline constexpr std::uint64_t kHasRule = 0x400;
inline constexpr int kRecordShift = 11;  // Then the record's shape: kind, size, changed words.

// kind 16 bits, size 4, changed 14.
constexpr std::uint64_t to_bits(const RecordShape& shape) {
  return shape.kind | shape.size << 16 | shape.changed << 20;
}
constexpr RecordShape record_shape(std::uint64_t bits) { return {bits & 0xFFFF, bits >> 16 & 0xF, bits >> 20}; }
static_assert(kMaxRecordWords <= 14);
static_assert(static_cast<int>(port::TraceWhat::kDropped) == 3, "an event's shape has two bits for what it is");

// Differences wrap, so that every pair of words has one.
constexpr std::uint64_t stepped(std::uint64_t from, std::int64_t by) { return from + static_cast<std::uint64_t>(by); }

// A cause is written as how far back it lies, and "none" (0) as the shortest number; one to one over all words.
constexpr std::uint64_t cause_code(std::uint64_t seq, std::uint64_t cause) {
  const std::uint64_t back = seq - cause;
  if (back == seq) return 0;
  return back < seq ? back + 1 : back;
}
constexpr std::uint64_t cause_of(std::uint64_t seq, std::uint64_t code) {
  if (code == 0) return 0;
  return seq - (code <= seq ? code - 1 : code);
}

// What the next line is predicted from. Places are shared by folding ids: two that fold to one place predict each other
// badly, which costs bytes and nothing else, because writer and reader fold alike.
struct BlockMemory {
  struct Node {
    std::uint64_t lamport = 0;
    std::uint32_t incarnation = 0;
  };
  struct Stream {
    std::uint64_t ordinal = 0;
    std::uint64_t bound = 0;
  };
  using Words = std::array<std::uint64_t, kMaxRecordWords>;

  static constexpr std::size_t kNodes = 1024;
  static constexpr std::size_t kKinds = 1024;
  static constexpr std::size_t kStates = 2048;
  static constexpr std::size_t kStreams = 256;

  std::uint64_t seq = 0;
  std::uint64_t step = 0;  // The last event that is no effect: what effects are caused by.
  std::int64_t at_ns = 0;
  NodeId node;
  SlotId slot;
  std::vector<Node> nodes = std::vector<Node>(kNodes);
  std::vector<Words> kinds = std::vector<Words>(kKinds);
  std::vector<Digest128> states = std::vector<Digest128>(kStates);
  std::vector<Stream> streams = std::vector<Stream>(kStreams);
  std::array<std::uint64_t, kKinds / 64> used_kinds{};  // Bits: which of `kinds` must be cleared.

  Node& of(NodeId id) { return nodes[id.value % kNodes]; }
  // Kinds count from 0 in blocks of 0x100, of which few are used.
  Words& of_kind(std::uint64_t kind) {
    const std::size_t place = ((kind >> 8) * 32U + (kind & 31U)) % kKinds;
    used_kinds[place / 64] |= std::uint64_t{1} << place % 64;
    return kinds[place];
  }
  Digest128& of(NodeId id, SlotId in) { return states[(id.value * 8 + in.value) % kStates]; }
  Stream& of_stream(std::uint32_t stream) { return streams[stream % kStreams]; }

  [[nodiscard]] std::uint64_t likely_cause(port::TraceWhat what) const {
    return what == port::TraceWhat::kEffect ? step : seq;
  }
  void after(const port::TraceEvent& event) {
    seq = event.seq;
    if (event.what != port::TraceWhat::kEffect) step = event.seq;
    at_ns = event.at.ns;
    of(event.node) = {event.lamport, event.incarnation};
  }

  void clear() {
    seq = 0;
    step = 0;
    at_ns = 0;
    node = {};
    slot = {};
    nodes.assign(kNodes, {});
    states.assign(kStates, {});
    streams.assign(kStreams, {});
    for (std::size_t i = 0; i < used_kinds.size(); ++i) {
      for (std::uint64_t bits = used_kinds[i]; bits != 0; bits &= bits - 1) {
        kinds[i * 64 + static_cast<std::size_t>(std::countr_zero(bits))] = {};
      }
    }
    used_kinds = {};
  }
};

}  // namespace areal::record
