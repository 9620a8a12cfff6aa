// Packs trace lines into small blocks of bytes and back; each block is read without the others.
//
// A line is written as its difference from what the lines before it in the block predict (block_format.h). All values
// survive exactly, also odd ones: prediction only decides how many bytes they take. Not thread-safe.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/result.h"
#include "engine/port/trace_sink.h"
#include "replay/record/block_format.h"
#include "replay/record/column_writer.h"

namespace areal::record {

// Shapes that an encoder can remember: twice as many places as it does remember.
inline constexpr int kPlaceBits = 11;
inline constexpr std::size_t kPlaces = std::size_t{1} << kPlaceBits;

class BlockEncoder final : public port::TraceSink {
 public:
  BlockEncoder();

  void on_event(const port::TraceEvent& event) override;
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override;
  void on_stream(std::uint32_t stream, std::string_view name) override;
  void on_decision(const port::Decision& decision) override;

  // The block so far: the sizes of all columns, the columns. Good until the next call.
  std::span<const std::uint8_t> bytes();
  // The size of bytes() without the column that does not pack; that one comes last.
  [[nodiscard]] std::size_t packable_bytes() const { return packable_bytes_; }
  // About the size of bytes().
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::uint64_t lines() const { return lines_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  // Begins the next block.
  void clear();

 private:
  struct Place {
    LineShape shape;
    std::uint32_t number = 0;
    std::uint32_t block = 0;  // Of which block; of another one it is empty.
  };

  ColumnWriter& column(Column which) { return columns_[static_cast<std::size_t>(which)]; }
  void write_shape(const LineShape& shape);
  bool moves_to(NodeId node, SlotId slot);
  void write_place(NodeId node, SlotId slot);
  std::uint64_t write_record(const Record& record);

  std::array<ColumnWriter, kColumns> columns_;
  BlockMemory memory_;
  std::vector<Place> places_;  // Shapes by hash, open addressing.
  std::uint32_t block_ = 1;
  std::uint32_t shapes_ = 0;
  ByteWriter out_;
  std::size_t packable_bytes_ = 0;
  std::size_t size_ = 0;
  std::uint64_t lines_ = 0;
  std::uint64_t events_ = 0;
};

// Gives the lines of one block to `sink`, in order. Fails with kCorrupt if the bytes are not exactly `lines` whole
// lines; the sink may then have heard some of them.
Status decode_block(std::span<const std::uint8_t> bytes, std::uint64_t lines, port::TraceSink& sink);

// The same for blocks of recordings of version 1.
Status decode_block_v1(std::span<const std::uint8_t> bytes, std::uint64_t lines, port::TraceSink& sink);

}  // namespace areal::record
