#include "engine/delta/wire/encoder.h"

#include <limits>
#include <string>

#include "engine/base/check.h"
#include "engine/delta/wire/bf16_step.h"

namespace areal::delta::wire {
namespace {

// Values far apart are asked for so many changes before they are needed.
constexpr std::size_t kAhead = 48;

constexpr std::uint64_t kMostElements = 1ULL << 62;

const char* wrong_with(const TensorChanges& tensor, ValueKind kind) {
  const bool is_half = kind.value_bytes == 2;
  if (!tensor.narrow.empty() && !tensor.wide.empty()) return "has two lists of indices";
  if (!(is_half ? tensor.word.empty() : tensor.half.empty())) return "has values of another width";
  if ((is_half ? tensor.half.size() : tensor.word.size()) != tensor.changes()) return "has not one value an index";
  if (tensor.elements > kMostElements) return "has more than 2^62 elements";
  if (tensor.changes() > tensor.elements) return "has more changes than elements";
  if (tensor.base.size() != (kind.form == Form::kSteps ? tensor.elements : 0)) return "has a base of another length";
  return nullptr;
}

Error tensor_error(std::uint64_t tensor, const char* what) {
  std::string text("tensor ");
  text.append(std::to_string(tensor)).append(" ").append(what);
  return {Errc::kInvalid, std::move(text)};
}

// Gaps of a block, and whether its indices ascend inside the tensor.
template <class Index>
bool fill_gaps(std::span<const Index> indices, std::uint64_t elements, BlockNumbers& numbers) {
  bool is_good = indices.front() >= 0 && static_cast<std::uint64_t>(indices.back()) < elements;
  for (std::size_t i = 1; i < indices.size(); ++i) {
    is_good &= indices[i - 1] < indices[i];
    numbers.gaps[i - 1] = static_cast<std::uint64_t>(indices[i]) - static_cast<std::uint64_t>(indices[i - 1]) - 1;
  }
  return is_good;
}

// Steps and values of a block whose indices are good, and what they add to the content.
template <class Index, class Value>
std::uint64_t fill_values(std::span<const Index> indices, std::span<const Value> values, const TensorChanges& tensor,
                          std::uint64_t key, BlockNumbers& numbers) {
  std::uint64_t content = 0;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    numbers.values[i] = values[i];
    content += content_part(key, static_cast<std::uint64_t>(indices[i]), values[i]);
  }
  if (tensor.base.empty()) return content;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i + kAhead < indices.size()) {
      __builtin_prefetch(&tensor.base[static_cast<std::uint64_t>(indices[i + kAhead])]);
    }
    numbers.steps[i] = step_number(tensor.base[static_cast<std::uint64_t>(indices[i])], numbers.values[i]);
  }
  return content;
}

template <class Index>
Status fill_block(std::span<const Index> list, const TensorChanges& tensor, std::uint64_t first, BlockPlace place,
                  BlockNumbers& numbers, BlockRun& run) {
  const std::span<const Index> indices = list.subspan(first, place.changes);
  bool is_good = first == 0 || list[first - 1] < list[first];
  is_good = fill_gaps(indices, tensor.elements, numbers) && is_good;
  if (!is_good) return tensor_error(place.tensor, "has indices outside or out of order");
  run.rows.back().first_index = static_cast<std::uint64_t>(indices.front());
  const std::uint64_t key = content_key(place.tensor);
  run.content += tensor.word.empty()
                     ? fill_values(indices, tensor.half.subspan(first, place.changes), tensor, key, numbers)
                     : fill_values(indices, tensor.word.subspan(first, place.changes), tensor, key, numbers);
  return Unit{};
}

}  // namespace

Result<EncodeTask> EncodeTask::make(std::span<const TensorChanges> tensors, ValueKind kind) {
  if (kind.value_bytes != 2 && (kind.form == Form::kSteps || kind.value_bytes != 4)) {
    return Error{Errc::kInvalid, "values have 2 bytes, or 4 and no base"};
  }
  EncodeTask task;
  task.tensors_ = tensors;
  task.kind_ = kind;
  for (std::uint64_t t = 0; t < tensors.size(); ++t) {
    if (const char* wrong = wrong_with(tensors[t], kind); wrong != nullptr) return tensor_error(t, wrong);
    task.starts_.add(tensors[t].changes());
  }
  return task;
}

Status encode_blocks(const EncodeTask& task, std::uint64_t first, std::uint64_t last, Path path, BlockRun& run) {
  run.units.clear();
  run.rows.clear();
  run.content = 0;
  BlockNumbers numbers;
  for (std::uint64_t block = first; block < last; ++block) {
    const BlockPlace place = place_of(task.starts(), block);
    const TensorChanges& tensor = task.tensors()[place.tensor];
    const std::uint64_t own = place.first_change - task.starts().change[place.tensor];
    const std::size_t begin = run.units.size();
    if (begin > kMostUnits) return Error{Errc::kUnsupported, "2^32 units of coded blocks and more: send parts"};
    run.rows.push_back({.begin = static_cast<std::uint32_t>(begin)});
    numbers.changes = place.changes;
    AREAL_TRY(tensor.narrow.empty() ? fill_block(tensor.wide, tensor, own, place, numbers, run)
                                    : fill_block(tensor.narrow, tensor, own, place, numbers, run));
    write_block(numbers, task.kind(), path, run.units);
    std::uint64_t sum = 0;
    for (std::size_t i = begin; i < run.units.size(); ++i) sum += check_part(i - begin, run.units[i]);
    run.rows.back().check = fold_check(sum);
  }
  return Unit{};
}

Result<std::vector<std::uint8_t>> join_runs(const EncodeTask& task, std::span<const BlockRun> runs) {
  Header header{
      .form_and_bytes = static_cast<std::uint64_t>(task.kind().form) | (std::uint64_t{task.kind().value_bytes} << 32),
      .tensors = task.tensors().size(),
      .changes = task.starts().change.back(),
      .blocks = task.blocks()};
  for (const BlockRun& run : runs) header.units += run.units.size(), header.content += run.content;
  if (header.units > kMostUnits) return Error{Errc::kUnsupported, "2^32 units of coded blocks and more: send parts"};

  const std::uint64_t rows = header.tensors + header.blocks;
  std::vector<std::uint8_t> bytes(8 * (kHeaderUnits + 2 * rows + header.units));
  header.check = header_check(header);
  std::uint64_t row = 0;
  const auto put_row = [&](std::uint64_t one, std::uint64_t two) {
    store_unit(bytes, kHeaderUnits + 2 * row, one);
    store_unit(bytes, kHeaderUnits + 2 * row + 1, two);
    header.check += rows_check(row++, one, two);
  };
  for (const TensorChanges& tensor : task.tensors()) put_row(tensor.elements, tensor.changes());
  std::uint64_t begin = 0;
  std::uint64_t place = kHeaderUnits + 2 * rows;
  for (const BlockRun& run : runs) {
    for (BlockRow block : run.rows) {
      block.begin += static_cast<std::uint32_t>(begin);
      put_row(block.first_index, row_word(block));
    }
    for (const std::uint64_t unit : run.units) store_unit(bytes, place++, unit);
    begin += run.units.size();
  }
  AREAL_CHECK(row == rows);
  const std::uint64_t units[] = {header.magic,  header.form_and_bytes, header.tensors, header.changes,
                                 header.blocks, header.units,          header.content, header.check};
  for (std::uint64_t i = 0; i < kHeaderUnits; ++i) store_unit(bytes, i, units[i]);
  return bytes;
}

Result<std::vector<std::uint8_t>> encode(std::span<const TensorChanges> tensors, ValueKind kind, Path path) {
  Result<EncodeTask> task = EncodeTask::make(tensors, kind);
  if (!task) return std::move(task).error();
  BlockRun run;
  AREAL_TRY(encode_blocks(*task, 0, task->blocks(), path, run));
  return join_runs(*task, std::span(&run, 1));
}

}  // namespace areal::delta::wire
