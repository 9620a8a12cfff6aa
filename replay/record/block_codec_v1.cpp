// Reads blocks of recordings of version 1; nothing writes them any more.
//
// Lines lie one behind the other, each with a first byte that says what of it is as predicted.
#include "replay/record/block_codec.h"

namespace areal::record {

namespace v1 {

namespace {

// Slots are shared by folding ids, as the writer did.
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
};

// The first byte of each packed line: what it is, and which parts are as predicted and left out.
enum class LineKind : std::uint8_t { kEvent, kState, kStream, kDecision };
constexpr std::uint8_t kLineKindMask = 0x03;
// Of events; what it is stands in bits 2 and 3.
constexpr int kWhatShift = 2;
constexpr std::uint8_t kNextSeq = 0x10;    // One more than the event before.
constexpr std::uint8_t kSamePlace = 0x20;  // Node and slot of the line before.
constexpr std::uint8_t kHasRule = 0x40;
constexpr std::uint8_t kHasBody = 0x80;
// Of states: kSamePlace, and the digest is the one before.
constexpr std::uint8_t kSameState = 0x04;
// Of decisions.
constexpr std::uint8_t kNextOrdinal = 0x04;
constexpr std::uint8_t kSameBound = 0x08;
constexpr std::uint8_t kChoseZero = 0x10;

class BlockDecoder {
 public:
  BlockDecoder(std::span<const std::uint8_t> bytes, port::TraceSink& sink) : in_(bytes), sink_(sink) {}

  Status decode(std::uint64_t lines) {
    for (std::uint64_t line = 0; line < lines; ++line) {
      const std::uint8_t head = in_.u8();
      switch (static_cast<LineKind>(head & kLineKindMask)) {
        case LineKind::kEvent:
          read_event(head);
          break;
        case LineKind::kState:
          read_state(head);
          break;
        case LineKind::kStream:
          read_stream();
          break;
        case LineKind::kDecision:
          read_decision(head);
          break;
      }
      if (!ok_ || !in_.ok()) return Error{Errc::kCorrupt, "an event block does not decode"};
    }
    if (!in_.at_end()) return Error{Errc::kCorrupt, "an event block has more lines than stated"};
    return Unit{};
  }

 private:
  void read_place(std::uint8_t head) {
    if ((head & kSamePlace) != 0) return;
    memory_.node.value = stepped(memory_.node.value, in_.signed_varint());
    memory_.slot.value = in_.varint();
  }

  Record read_record() {
    Record record;
    const std::uint64_t kind = in_.varint();
    record.kind = static_cast<KindId>(kind);
    record.size = in_.u8();
    ok_ = ok_ && kind <= 0xFFFF && record.size <= kMaxRecordWords;
    if (!ok_) return {};
    Record& before = memory_.of_kind(record.kind);
    const std::uint64_t changed = in_.varint();
    ok_ = changed >> record.size == 0;
    for (std::size_t i = 0; i < record.size; ++i) {
      record.words[i] = before.words[i];
      if ((changed >> i & 1) != 0) record.words[i] = stepped(before.words[i], in_.signed_varint());
      before.words[i] = record.words[i];
    }
    return record;
  }

  void read_event(std::uint8_t head) {
    port::TraceEvent event;
    event.what = static_cast<port::TraceWhat>(head >> kWhatShift & 3);
    event.seq = (head & kNextSeq) != 0 ? memory_.seq + 1 : stepped(memory_.seq, in_.signed_varint());
    event.cause = cause_of(event.seq, in_.varint());
    read_place(head);
    event.node = memory_.node;
    event.slot = memory_.slot;
    BlockMemory::Node& node = memory_.of(event.node);
    event.incarnation = static_cast<Incarnation>(stepped(node.incarnation, in_.signed_varint()));
    event.lamport = stepped(node.lamport + 1, in_.signed_varint());
    event.at.ns = static_cast<std::int64_t>(stepped(static_cast<std::uint64_t>(memory_.at_ns), in_.signed_varint()));
    if ((head & kHasRule) != 0) event.rule = static_cast<std::uint32_t>(in_.varint());
    event.record = read_record();
    if ((head & kHasBody) != 0) event.body = read_record();
    memory_.seq = event.seq;
    memory_.at_ns = event.at.ns;
    node = {event.lamport, event.incarnation};
    if (ok_ && in_.ok()) sink_.on_event(event);
  }

  void read_state(std::uint8_t head) {
    read_place(head);
    Digest128& state = memory_.of(memory_.node, memory_.slot);
    if ((head & kSameState) == 0) {
      state.high = in_.u64();
      state.low = in_.u64();
    }
    if (in_.ok()) sink_.on_state(memory_.node, memory_.slot, state);
  }

  void read_stream() {
    const auto stream = static_cast<std::uint32_t>(in_.varint());
    const std::string name = in_.text();
    if (in_.ok()) sink_.on_stream(stream, name);
  }

  void read_decision(std::uint8_t head) {
    port::Decision decision;
    decision.stream = static_cast<std::uint32_t>(in_.varint());
    BlockMemory::Stream& stream = memory_.of_stream(decision.stream);
    decision.ordinal = (head & kNextOrdinal) != 0 ? stream.ordinal + 1 : in_.varint();
    decision.bound = (head & kSameBound) != 0 ? stream.bound : in_.varint();
    decision.chosen = (head & kChoseZero) != 0 ? 0 : in_.varint();
    stream = {decision.ordinal, decision.bound};
    if (in_.ok()) sink_.on_decision(decision);
  }

  ByteReader in_;
  port::TraceSink& sink_;
  BlockMemory memory_;
  bool ok_ = true;
};

}  // namespace

}  // namespace v1

Status decode_block_v1(std::span<const std::uint8_t> bytes, std::uint64_t lines, port::TraceSink& sink) {
  return v1::BlockDecoder(bytes, sink).decode(lines);
}

}  // namespace areal::record
