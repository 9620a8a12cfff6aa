#include "sim/cli/cause_log.h"

#include <algorithm>

namespace areal::cli {
namespace {

constexpr std::size_t kMostEvents = 2'000'000;
constexpr std::size_t kHead = 4;  // Cause, node, rule, kinds and sizes.
constexpr std::size_t kMostWords = kHead + 2 * kMaxRecordWords;

// `from`: the words behind the head, or behind another record's.
Record record_of(std::uint64_t kind_and_size, const std::uint64_t* from) {
  Record record;
  record.kind = static_cast<KindId>(kind_and_size & 0xFFFF);
  record.size = static_cast<std::uint8_t>((kind_and_size >> 16) & 0xFF);
  std::copy_n(from, record.size, record.words.begin());
  return record;
}

std::uint64_t kind_and_size(const Record& record) { return record.kind | (std::uint64_t{record.size} << 16); }

}  // namespace

void CauseLog::on_event(const port::TraceEvent& event) {
  if (places_.size() >= kMostEvents || event.seq != places_.size() + 1) return;
  if (kPiece - used_ < kMostWords) {
    pieces_.push_back(std::make_unique_for_overwrite<std::uint64_t[]>(kPiece));  // NOLINT(modernize-avoid-c-arrays)
    used_ = 0;
  }
  places_.push_back(static_cast<std::uint32_t>((pieces_.size() - 1) * kPiece + used_));
  std::uint64_t* words = pieces_.back().get() + used_;
  words[0] = event.cause;
  words[1] = event.node.value;
  words[2] = event.rule;
  words[3] = kind_and_size(event.record) | (kind_and_size(event.body) << 32);
  const auto behind = std::ranges::copy(event.record.view(), words + kHead).out;
  used_ = static_cast<std::size_t>(std::ranges::copy(event.body.view(), behind).out - pieces_.back().get());
}

const std::uint64_t* CauseLog::words_of(std::uint64_t seq) const {
  const std::size_t place = places_[seq - 1];
  return pieces_[place / kPiece].get() + place % kPiece;
}

std::vector<CauseLog::Cause> CauseLog::chain(std::uint64_t seq, std::size_t most) const {
  std::vector<Cause> chain;
  while (seq != 0 && seq <= places_.size() && chain.size() < most) {
    const std::uint64_t* words = words_of(seq);
    const Record record = record_of(words[3] & 0xFFFF'FFFF, words + kHead);
    chain.push_back({.seq = seq,
                     .node = {words[1]},
                     .rule = static_cast<std::uint32_t>(words[2]),
                     .record = record,
                     .body = record_of(words[3] >> 32, words + kHead + record.size)});
    seq = words[0];
  }
  return chain;
}

}  // namespace areal::cli
