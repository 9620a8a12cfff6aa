// Packs trace lines into small blocks of bytes and back; each block is read without the others.
//
// A line is written as its difference from what the lines before it in the block predict. All values survive exactly,
// also odd ones: prediction only decides how many bytes they take. Not thread-safe.
#pragma once
#include <cstdint>
#include <span>

#include "engine/base/bytes.h"
#include "engine/base/result.h"
#include "engine/port/trace_sink.h"
#include "replay/record/block_memory.h"

namespace areal::record {

class BlockEncoder : public port::TraceSink {
 public:
  void on_event(const port::TraceEvent& event) override;
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override;
  void on_stream(std::uint32_t stream, std::string_view name) override;
  void on_decision(const port::Decision& decision) override;

  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return out_.view(); }
  [[nodiscard]] std::uint64_t lines() const { return lines_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  // Begins the next block.
  void clear();

 private:
  void write_place(NodeId node, SlotId slot, std::uint8_t head);
  void write_record(const Record& record);

  ByteWriter out_;
  BlockMemory memory_;
  std::uint64_t lines_ = 0;
  std::uint64_t events_ = 0;
};

// Gives the lines of one block to `sink`, in order. Fails with kCorrupt if the bytes are not exactly `lines` whole
// lines; the sink may then have heard some of them.
Status decode_block(std::span<const std::uint8_t> bytes, std::uint64_t lines, port::TraceSink& sink);

}  // namespace areal::record
