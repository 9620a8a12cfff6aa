// Codes the changes of many tensors into one message.
//
// Equal changes give equal bytes on every machine, with any number of threads, on CPUs and devices. Pure functions:
// parts of the work may be done on any thread and put together.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/result.h"
#include "engine/delta/wire/block.h"
#include "engine/delta/wire/message.h"

namespace areal::delta::wire {

// What changed in one tensor: ascending indices, and the new value of each. Views.
struct TensorChanges {
  std::uint64_t elements = 0;
  std::span<const std::int32_t> narrow{};  // One of the two; the bytes do not depend on which.
  std::span<const std::int64_t> wide{};
  std::span<const std::uint16_t> half{};  // One of the two: of 2 bytes (bf16 or anything), or of 4.
  std::span<const std::uint32_t> word{};
  // All bf16 values as the receiver holds them now, for the form kSteps: `elements` of them, otherwise none.
  std::span<const std::uint16_t> base{};

  [[nodiscard]] std::uint64_t changes() const { return narrow.empty() ? wide.size() : narrow.size(); }
};

// The message's tensors, checked as far as that needs no look at their changes.
class EncodeTask {
 public:
  // Refuses other widths than 2 and 4 bytes, steps of other values than 2 bytes, lists of unequal length, two lists of
  // one kind, a base of another length, more changes than elements, and tensors of more than 2^62 elements.
  static Result<EncodeTask> make(std::span<const TensorChanges> tensors, ValueKind kind);

  [[nodiscard]] std::span<const TensorChanges> tensors() const { return tensors_; }
  [[nodiscard]] ValueKind kind() const { return kind_; }
  [[nodiscard]] const TensorStarts& starts() const { return starts_; }
  [[nodiscard]] std::uint64_t blocks() const { return starts_.block.back(); }

 private:
  std::span<const TensorChanges> tensors_;
  ValueKind kind_;
  TensorStarts starts_;
};

// Blocks that follow each other. Begins count from the first of them.
struct BlockRun {
  std::vector<std::uint64_t> units;
  std::vector<BlockRow> rows;
  std::uint64_t content = 0;
};

// Codes blocks first .. last - 1 into `run`, which it clears. Refuses indices that do not ascend or are outside.
Status encode_blocks(const EncodeTask& task, std::uint64_t first, std::uint64_t last, Path path, BlockRun& run);

// The message of all blocks. Refuses 2^32 units of blocks and more (32 GiB: send parts). REQUIRES: the runs hold all
// blocks of the task in order.
Result<std::vector<std::uint8_t>> join_runs(const EncodeTask& task, std::span<const BlockRun> runs);

// All of it on this thread.
Result<std::vector<std::uint8_t>> encode(std::span<const TensorChanges> tensors, ValueKind kind,
                                         Path path = Path::kFast);

}  // namespace areal::delta::wire
