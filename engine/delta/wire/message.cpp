#include "engine/delta/wire/message.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

namespace areal::delta::wire {
namespace {

// Without a library for text: the device code's tests build this file, and have none.
Error error_of(Errc code, std::initializer_list<std::string_view> words) {
  std::string text("coded delta: ");
  for (const std::string_view word : words) text.append(word);
  return {code, std::move(text)};
}

std::string word(std::uint64_t number) { return std::to_string(number); }

}  // namespace

std::uint64_t load_unit(std::span<const std::uint8_t> bytes, std::uint64_t place) {
  const std::uint8_t* from = bytes.data() + 8 * place;
  std::uint64_t unit = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&unit, from, 8);
    return unit;
  }
  for (std::uint32_t i = 0; i < 8; ++i) unit |= std::uint64_t{from[i]} << (8 * i);
  return unit;
}

void store_unit(std::span<std::uint8_t> bytes, std::uint64_t place, std::uint64_t unit) {
  std::uint8_t* to = bytes.data() + 8 * place;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(to, &unit, 8);
    return;
  }
  for (std::uint32_t i = 0; i < 8; ++i) to[i] = static_cast<std::uint8_t>(unit >> (8 * i));
}

std::uint64_t header_check(const Header& header) {
  const std::uint64_t units[] = {header.magic,  header.form_and_bytes, header.tensors, header.changes,
                                 header.blocks, header.units,          header.content};
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < std::size(units); ++i) sum += check_part(i, units[i]);
  return sum;
}

std::uint64_t rows_check(std::uint64_t row, std::uint64_t first, std::uint64_t second) {
  const std::uint64_t place = kHeaderUnits + 2 * row;
  return check_part(place, first) + check_part(place + 1, second);
}

BlockPlace place_of(const TensorStarts& starts, std::uint64_t block) {
  const auto above = std::ranges::upper_bound(starts.block, block);
  const auto tensor = static_cast<std::uint64_t>(above - starts.block.begin()) - 1;
  const std::uint64_t first = starts.change[tensor] + (block - starts.block[tensor]) * kBlockChanges;
  return {tensor, first,
          static_cast<std::uint32_t>(std::min<std::uint64_t>(kBlockChanges, starts.change[tensor + 1] - first))};
}

Error block_error(std::uint64_t block, const BlockPlace& place, const char* what) {
  return error_of(Errc::kCorrupt, {"block ", word(block), ", changes ", word(place.first_change), " and after, tensor ",
                                   word(place.tensor), ": ", what});
}

Result<Message> Message::open(std::span<const std::uint8_t> bytes, std::span<const std::uint64_t> tensor_elements) {
  Message message;
  message.bytes_ = bytes;
  AREAL_TRY(message.read_header());
  AREAL_TRY(message.read_tensors(tensor_elements));
  AREAL_TRY(message.read_blocks(tensor_elements));
  return message;
}

Status Message::read_header() {
  const std::uint64_t there = bytes_.size() / 8;
  if (there < kHeaderUnits) {
    return error_of(Errc::kTruncated, {word(bytes_.size()), " bytes are no header"});
  }
  header_ = {load_unit(bytes_, 0), load_unit(bytes_, 1), load_unit(bytes_, 2), load_unit(bytes_, 3),
             load_unit(bytes_, 4), load_unit(bytes_, 5), load_unit(bytes_, 6), load_unit(bytes_, 7)};
  if (header_.magic != kMagic) return error_of(Errc::kInvalid, {"begins with other bytes than any of version 1"});
  const std::uint32_t form = static_cast<std::uint32_t>(header_.form_and_bytes & 0xFFFFFFFFU);
  const bool is_step = form == static_cast<std::uint32_t>(Form::kSteps);
  if (form > static_cast<std::uint32_t>(Form::kSteps) || (value_bytes() != 2 && (is_step || value_bytes() != 4))) {
    return error_of(Errc::kInvalid, {"form ", word(form), " of ", word(value_bytes()), "-byte values does not exist"});
  }
  // Each alone first, so that the sum cannot run over.
  const std::uint64_t most = std::max({header_.tensors, header_.blocks, header_.units});
  const std::uint64_t claimed = most > there ? most : first_block() + header_.units;
  if (claimed > there) {
    return error_of(Errc::kTruncated, {"the header speaks of ", word(claimed), " units of 8 bytes and more, ",
                                       word(bytes_.size()), " bytes are there"});
  }
  if (claimed * 8 != bytes_.size()) {
    return error_of(Errc::kInvalid, {word(bytes_.size() - claimed * 8), " bytes stand behind the last block"});
  }
  std::uint64_t sum = header_check(header_);
  const std::uint64_t rows = header_.tensors + header_.blocks;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t place = kHeaderUnits + 2 * row;
    sum += rows_check(row, load_unit(bytes_, place), load_unit(bytes_, place + 1));
  }
  if (sum != header_.check) return error_of(Errc::kCorrupt, {"header and rows do not fit their check"});
  return Unit{};
}

Status Message::read_tensors(std::span<const std::uint64_t> tensor_elements) {
  if (header_.tensors != tensor_elements.size()) {
    return error_of(Errc::kInvalid,
                    {word(header_.tensors), " tensors, and the receiver has ", word(tensor_elements.size())});
  }
  for (std::uint64_t t = 0; t < header_.tensors; ++t) {
    const std::uint64_t elements = load_unit(bytes_, kHeaderUnits + 2 * t);
    const std::uint64_t changes = load_unit(bytes_, kHeaderUnits + 2 * t + 1);
    if (elements != tensor_elements[t]) {
      return error_of(Errc::kInvalid, {"tensor ", word(t), " has ", word(elements), " elements, and the receiver's ",
                                       word(tensor_elements[t])});
    }
    // Against the blocks as well: a sum of more than 2^64 changes would otherwise come round again.
    if (changes > elements || blocks_of(changes) > header_.blocks - starts_.block.back()) {
      return error_of(Errc::kCorrupt, {"tensor ", word(t), " has ", word(changes), " changes of ", word(elements),
                                       " elements, and too few blocks or elements for them"});
    }
    starts_.add(changes);
  }
  if (starts_.change.back() != header_.changes || starts_.block.back() != header_.blocks) {
    return error_of(Errc::kCorrupt,
                    {"tensors have ", word(starts_.change.back()), " changes in ", word(starts_.block.back()),
                     " blocks, the header says ", word(header_.changes), " in ", word(header_.blocks)});
  }
  return Unit{};
}

Status Message::read_blocks(std::span<const std::uint64_t> tensor_elements) const {
  std::uint64_t tensor = 0;
  std::uint64_t begin = 0;
  for (std::uint64_t block = 0; block < header_.blocks; ++block) {
    while (block >= starts_.block[tensor + 1]) ++tensor;
    const BlockRow now = row(block);
    const std::uint64_t next = block + 1 < header_.blocks ? row(block + 1).begin : header_.units;
    if (now.begin != begin || next <= begin || next - begin > kMostBlockUnits || next > header_.units) {
      return block_error(block, place_of(starts_, block), "begins or ends where none can");
    }
    if (now.first_index >= index_limit(block, tensor, tensor_elements[tensor])) {
      return block_error(block, place_of(starts_, block), "begins behind what comes after it");
    }
    begin = next;
  }
  if (begin != header_.units) return error_of(Errc::kCorrupt, {"units that no block has"});
  return Unit{};
}

BlockRow Message::row(std::uint64_t block) const {
  const std::uint64_t place = first_row() + kBlockRowUnits * block;
  const std::uint64_t second = load_unit(bytes_, place + 1);
  return {load_unit(bytes_, place), static_cast<std::uint32_t>(second), static_cast<std::uint32_t>(second >> 32)};
}

std::uint64_t Message::index_limit(std::uint64_t block, std::uint64_t tensor, std::uint64_t elements) const {
  if (block + 1 == starts_.block[tensor + 1]) return elements;
  return std::min(row(block + 1).first_index, elements);
}

std::uint32_t Message::block_units(std::uint64_t block) const {
  const std::uint64_t end = block + 1 < header_.blocks ? row(block + 1).begin : header_.units;
  return static_cast<std::uint32_t>(end - row(block).begin);
}

Status Message::take_block(std::uint64_t block, std::vector<std::uint64_t>& units) const {
  const BlockRow now = row(block);
  const std::uint64_t place = first_block() + now.begin;
  units.resize(block_units(block));
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < units.size(); ++i) {
    units[i] = load_unit(bytes_, place + i);
    sum += check_part(i, units[i]);
  }
  if (fold_check(sum) != now.check) return block_error(block, place_of(starts_, block), "does not fit its check");
  return Unit{};
}

}  // namespace areal::delta::wire
