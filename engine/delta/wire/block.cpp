#include "engine/delta/wire/block.h"

namespace areal::delta::wire {

void write_block(const BlockNumbers& numbers, ValueKind kind, Path path, std::vector<std::uint64_t>& units) {
  if (path == Path::kReference) return write_block_reference(numbers, kind, units);
  write_block_fast(numbers, kind, units);
}

const char* read_block(std::span<const std::uint64_t> units, ValueKind kind, Path path, BlockNumbers& numbers,
                       bool& has_steps) {
  if (units.empty()) return "has no bytes";
  if (units.size() > kMostBlockUnits) return "is longer than any block can be";
  const BlockHead head = unpack_head(units[0]);
  if (!is_valid_head(head, numbers.changes, kind.form, kind.value_bytes)) return "begins with codes that do not exist";
  if (parts_of(head, numbers.changes).units() != units.size()) return "has another length than its codes take";
  has_steps = head.has_steps;
  return path == Path::kReference ? read_lists_reference(units, head, numbers) : read_lists_fast(units, head, numbers);
}

}  // namespace areal::delta::wire
