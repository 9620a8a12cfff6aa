// A coded delta that was received: opened, its tables checked, its blocks found; nothing of it is believed before.
//
// Safe on any thread; a view of the bytes, which must outlive it.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/result.h"
#include "engine/delta/wire/format.h"

namespace areal::delta::wire {

// Unit number `place` of little-endian bytes. REQUIRES: it is inside.
std::uint64_t load_unit(std::span<const std::uint8_t> bytes, std::uint64_t place);
void store_unit(std::span<std::uint8_t> bytes, std::uint64_t place, std::uint64_t unit);

std::uint64_t header_check(const Header& header);
// One row's part of the header's check; rows are counted through tensors and blocks.
std::uint64_t rows_check(std::uint64_t row, std::uint64_t first, std::uint64_t second);

// Where each tensor's changes and blocks begin, and behind the last one the totals.
struct TensorStarts {
  std::vector<std::uint64_t> change{0};
  std::vector<std::uint64_t> block{0};

  void add(std::uint64_t changes) {
    change.push_back(change.back() + changes);
    block.push_back(block.back() + blocks_of(changes));
  }
};

// A block's place among the changes of a message.
struct BlockPlace {
  std::uint64_t tensor = 0;
  std::uint64_t first_change = 0;  // Among all changes.
  std::uint32_t changes = 0;
};
// REQUIRES: block < starts.block.back().
BlockPlace place_of(const TensorStarts& starts, std::uint64_t block);

class Message {
 public:
  // `tensor_elements`: of the receiver's own tensors. Refuses bytes that are too short or too long for what their
  // header says, another magic, form or width than exist, a check that does not fit, other tensors than the receiver's,
  // more changes than elements, and rows of blocks that overlap, leave gaps, or do not ascend inside their tensor.
  // Allocates for the receiver's tensors and nothing else.
  static Result<Message> open(std::span<const std::uint8_t> bytes, std::span<const std::uint64_t> tensor_elements);

  [[nodiscard]] const Header& header() const { return header_; }
  [[nodiscard]] Form form() const { return static_cast<Form>(header_.form_and_bytes & 0xFFFFFFFFU); }
  [[nodiscard]] std::uint32_t value_bytes() const { return static_cast<std::uint32_t>(header_.form_and_bytes >> 32); }
  [[nodiscard]] const TensorStarts& starts() const { return starts_; }
  [[nodiscard]] BlockRow row(std::uint64_t block) const;
  // What its indices stay below: the next block's first of the same tensor, or the tensor's end.
  [[nodiscard]] std::uint64_t index_limit(std::uint64_t block, std::uint64_t tensor, std::uint64_t elements) const;
  // Its units. REQUIRES: block < header().blocks.
  [[nodiscard]] std::uint32_t block_units(std::uint64_t block) const;
  // Copies them into `units`, and refuses a check that does not fit.
  [[nodiscard]] Status take_block(std::uint64_t block, std::vector<std::uint64_t>& units) const;

 private:
  Status read_header();
  Status read_tensors(std::span<const std::uint64_t> tensor_elements);
  [[nodiscard]] Status read_blocks(std::span<const std::uint64_t> tensor_elements) const;
  [[nodiscard]] std::uint64_t first_row() const { return kHeaderUnits + kTensorUnits * header_.tensors; }
  [[nodiscard]] std::uint64_t first_block() const { return first_row() + kBlockRowUnits * header_.blocks; }

  std::span<const std::uint8_t> bytes_;
  Header header_;
  TensorStarts starts_;
};

// kCorrupt, with where it is.
Error block_error(std::uint64_t block, const BlockPlace& place, const char* what);

}  // namespace areal::delta::wire
