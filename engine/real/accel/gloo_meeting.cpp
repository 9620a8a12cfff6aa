#include "engine/real/accel/gloo_meeting.h"

#include <gloo/transport/unbound_buffer.h>

#include <algorithm>

#include "engine/base/check.h"

namespace areal::accel {
namespace {

using port::BatchKind;

enum Word : std::size_t { kKind, kTag, kValue, kCount, kSums, kStatuses, kWellFormed, kSizes };

std::size_t words_of_card(std::uint32_t world) { return kSizes + 2 * std::size_t{world}; }

// Senders meet receivers: theirs is one kind.
std::uint64_t kind_of(BatchKind kind) {
  return static_cast<std::uint64_t>(kind == BatchKind::kReceive ? BatchKind::kSend : kind);
}

// False if a peer is there twice, or is none.
bool add_sizes(const std::vector<PeerBytes>& list, std::uint32_t rank, std::span<std::uint64_t> sizes) {
  std::vector<bool> seen(sizes.size());
  for (const PeerBytes& peer : list) {
    if (peer.rank >= sizes.size() || peer.rank == rank || seen[peer.rank]) return false;
    seen[peer.rank] = true;
    sizes[peer.rank] = peer.bytes.size();
  }
  return true;
}

void reduce(Verdict& verdict, BatchKind kind, std::uint64_t value, std::uint64_t count) {
  switch (kind) {
    case BatchKind::kSum:
    case BatchKind::kReduce:
      verdict.value += value;
      verdict.count += count;
      break;
    case BatchKind::kMin:
      verdict.value = std::min(verdict.value, value);
      verdict.count = std::min(verdict.count, count);
      break;
    case BatchKind::kMax:
      verdict.value = std::max(verdict.value, value);
      verdict.count = std::max(verdict.count, count);
      break;
    case BatchKind::kBarrier:
    case BatchKind::kSend:
    case BatchKind::kReceive:
      break;
  }
}

bool reduces(BatchKind kind) {
  return kind == BatchKind::kSum || kind == BatchKind::kReduce || kind == BatchKind::kMin || kind == BatchKind::kMax;
}

}  // namespace

Card card_of(const BatchWish& wish, std::uint32_t rank, std::uint32_t world) {
  Card card(words_of_card(world));
  card[kKind] = kind_of(wish.kind);
  card[kTag] = wish.tag;
  card[kValue] = wish.value;
  card[kCount] = wish.count;
  if (wish.kind == BatchKind::kReduce) {
    card[kSums] = wish.sums.size();
    card[kStatuses] = wish.statuses.size();
  }
  bool well_formed = true;
  if (card[kKind] == kind_of(BatchKind::kSend)) {
    const std::span sizes = std::span(card).subspan(kSizes);
    well_formed = add_sizes(wish.sends, rank, sizes.first(world)) && add_sizes(wish.receives, rank, sizes.last(world));
  }
  card[kWellFormed] = well_formed ? 1 : 0;
  return card;
}

Card plain_card(std::uint32_t world) {
  Card card(words_of_card(world));
  card[kWellFormed] = 1;
  return card;
}

Verdict judge(std::span<const std::uint64_t> cards, std::uint32_t rank, std::uint32_t world) {
  const std::size_t words = words_of_card(world);
  const auto card = [&](std::uint32_t of) { return cards.subspan(of * words, words); };
  const auto first = card(0);
  const auto kind = static_cast<BatchKind>(first[kKind]);
  const std::uint32_t start = reduces(kind) ? 0 : rank;
  Verdict verdict{true, card(start)[kValue], card(start)[kCount]};
  for (std::uint32_t of = 0; of < world; ++of) {
    const auto one = card(of);
    for (const std::size_t word : {kKind, kTag, kSums, kStatuses}) verdict.fits &= one[word] == first[word];
    verdict.fits &= one[kWellFormed] == 1;
    for (std::uint32_t peer = 0; peer < world; ++peer) {
      verdict.fits &= one[kSizes + peer] == card(peer)[kSizes + world + of];
    }
    if (of > 0) reduce(verdict, kind, one[kValue], one[kCount]);
  }
  return verdict;
}

Meeting::Meeting(Mesh& mesh)
    : mesh_(mesh), rank_(mesh.rank()), world_(mesh.world()), card_words_(words_of_card(world_)) {
  while ((std::uint64_t{1} << steps_) < world_) ++steps_;
  by_rank_.resize(card_words_ * world_);
  for (Table& table : tables_) {
    table.words.resize(card_words_ * world_);
    table.asked.resize(steps_);
    for (std::uint32_t step = 0; step < steps_; ++step) {
      const std::size_t have = std::size_t{1} << step;
      const std::size_t bytes = std::min(have, world_ - have) * card_words_ * sizeof(std::uint64_t);
      table.out.push_back(mesh.buffer(table.words.data(), bytes));
      table.in.push_back(mesh.buffer(table.words.data() + have * card_words_, bytes));
    }
  }
}

std::uint32_t Meeting::sender(std::uint32_t step) const {
  return static_cast<std::uint32_t>((rank_ + (std::uint64_t{1} << step)) % world_);
}

std::uint32_t Meeting::receiver(std::uint32_t step) const {
  return static_cast<std::uint32_t>((rank_ + world_ - (std::uint64_t{1} << step)) % world_);
}

std::span<const std::uint64_t> Meeting::exchange(const Card& own) {
  AREAL_CHECK(own.size() == card_words_);
  const std::uint64_t parity = turn_++ % 2;
  Table& table = tables_[parity];
  Table& next = tables_[1 - parity];
  const auto slot = [](std::uint64_t of, std::uint32_t step) { return kCardSlots + of * 64 + step; };
  std::ranges::copy(own, table.words.begin());
  for (std::uint32_t step = 0; step < steps_; ++step) {
    if (!table.asked[step]) mesh_.receive(table.in[step], sender(step), slot(parity, step));
    table.asked[step] = true;
  }
  for (std::uint32_t step = 0; step < steps_; ++step) {
    mesh_.send(table.out[step], receiver(step), slot(parity, step));
    next.asked[step] = next.asked[step] || mesh_.receive_ahead(next.in[step], sender(step), slot(1 - parity, step));
    mesh_.wait_received(table.in[step], sender(step));
    table.asked[step] = false;
  }
  for (std::uint32_t step = 0; step < steps_; ++step) mesh_.wait_sent(table.out[step], receiver(step));
  for (std::uint32_t i = 0; i < world_; ++i) {
    const auto card = std::span(table.words).subspan(i * card_words_, card_words_);
    const std::size_t of = (rank_ + i) % world_;
    std::ranges::copy(card, by_rank_.begin() + static_cast<std::ptrdiff_t>(of * card_words_));
  }
  return by_rank_;
}

void Meeting::end() {
  for (Table& table : tables_) {
    table.in.clear();
    table.out.clear();
  }
}

}  // namespace areal::accel
