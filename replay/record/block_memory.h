// What the packing of trace lines predicts from: the same memory on both sides, empty at the start of each block.
//
// Slots are shared by folding ids: two ids that fold to one slot predict each other badly, which costs bytes and
// nothing else, because writer and reader fold alike.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/port/trace_sink.h"

namespace areal::record {

struct BlockMemory {
  struct Node {
    std::uint64_t lamport = 0;
    std::uint32_t incarnation = 0;
  };
  struct Stream {
    std::uint64_t ordinal = 0;
    std::uint64_t bound = 0;
  };

  static constexpr std::size_t kNodes = 1024;
  static constexpr std::size_t kKinds = 1024;
  static constexpr std::size_t kStates = 4096;
  static constexpr std::size_t kStreams = 256;

  std::uint64_t seq = 0;
  std::int64_t at_ns = 0;
  NodeId node;
  SlotId slot;
  std::vector<Node> nodes = std::vector<Node>(kNodes);
  std::vector<Record> kinds = std::vector<Record>(kKinds);
  std::vector<Digest128> states = std::vector<Digest128>(kStates);
  std::vector<Stream> streams = std::vector<Stream>(kStreams);

  Node& of(NodeId id) { return nodes[id.value % kNodes]; }
  // Kinds count from 0 in blocks of 0x100, of which few are used.
  Record& of_kind(KindId kind) { return kinds[((kind >> 8) * 32U + (kind & 31U)) % kKinds]; }
  Digest128& of(NodeId id, SlotId in) { return states[(id.value * 8 + in.value) % kStates]; }
  Stream& of_stream(std::uint32_t stream) { return streams[stream % kStreams]; }

  void clear() {
    seq = 0;
    at_ns = 0;
    node = {};
    slot = {};
    nodes.assign(kNodes, {});
    kinds.assign(kKinds, {});
    states.assign(kStates, {});
    streams.assign(kStreams, {});
  }
};

// The first byte of each packed line: what it is, and which parts are as predicted and left out.
enum class LineKind : std::uint8_t { kEvent, kState, kStream, kDecision };
inline constexpr std::uint8_t kLineKindMask = 0x03;
// Of events; what it is stands in bits 2 and 3.
inline constexpr int kWhatShift = 2;
inline constexpr std::uint8_t kNextSeq = 0x10;    // One more than the event before.
inline constexpr std::uint8_t kSamePlace = 0x20;  // Node and slot of the line before.
inline constexpr std::uint8_t kHasRule = 0x40;
inline constexpr std::uint8_t kHasBody = 0x80;
// Of states: kSamePlace, and the digest is the one before.
inline constexpr std::uint8_t kSameState = 0x04;
// Of decisions.
inline constexpr std::uint8_t kNextOrdinal = 0x04;
inline constexpr std::uint8_t kSameBound = 0x08;
inline constexpr std::uint8_t kChoseZero = 0x10;

}  // namespace areal::record
