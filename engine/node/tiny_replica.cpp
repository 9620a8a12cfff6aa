#include "engine/node/tiny_replica.h"

#include <algorithm>
#include <utility>

#include "engine/base/rng.h"
#include "engine/delta/bf16.h"
#include "engine/delta/element_digest.h"
#include "engine/node/tiny_trainer.h"
#include "engine/node/tiny_words.h"

namespace areal::node {
namespace {

std::uint32_t initial_bits(std::uint64_t key, DType wire) {
  const float weight = initial_weight(key);
  return wire == DType::kBf16 ? delta::to_bf16(weight) : std::bit_cast<std::uint32_t>(weight);
}

}  // namespace

TinyReplica::TinyReplica(TinyShapePtr shape, std::uint32_t engine, std::uint32_t infer_rank)
    : shape_(std::move(shape)), rank_(shape_->world().infer_rank(infer_rank, engine)) {
  AREAL_CHECK(engine < shape_->world().engines);
  AREAL_CHECK(infer_rank < shape_->world().instance());
  const proto::RankPlan plan = shape_->plan->rank(rank_);
  for (std::size_t i = 0; i < plan.peer_count(); ++i) {
    staging_.push_back({static_cast<std::uint32_t>(&plan.list(i) - shape_->plan->lists.data()), false, {}});
  }
  load();
}

const TinyHolding& TinyReplica::holding() const { return shape_->replicas[rank_ % shape_->world().instance()]; }

Digest128 TinyReplica::part_digest(const TinyPart& part) const {
  const TinyHolding& here = holding();
  delta::ElementSum sum;
  for (std::uint32_t i = part.first; i < part.first + part.count; ++i) {
    sum.add(delta::digest_of_key(shape_->keys[here.cells[i]], live_[i]));
  }
  return sum.digest();
}

void TinyReplica::load() {
  const TinyHolding& here = holding();
  clear_staging();
  live_.resize(here.cells.size());
  part_digests_.clear();
  for (const TinyPart& part : here.parts) {
    for (std::uint32_t i = part.first; i < part.first + part.count; ++i) {
      live_[i] = initial_bits(shape_->keys[here.cells[i]], part.wire);
    }
    part_digests_.push_back(part_digest(part));
  }
}

bool TinyReplica::land(std::uint32_t sender, std::span<const std::uint32_t> bits) {
  const auto place = std::ranges::find_if(
      staging_, [&](const Staged& staged) { return shape_->streams[staged.stream].sender == sender; });
  if (place == staging_.end() || bits.size() != shape_->streams[place->stream].recv.size()) return false;
  place->bits.assign(bits.begin(), bits.end());
  place->landed = true;
  return true;
}

void TinyReplica::clear_staging() {
  for (Staged& staged : staging_) {
    staged.landed = false;
    staged.bits.clear();
  }
}

bool TinyReplica::flip(std::uint64_t pick) {
  std::uint64_t total = 0;
  for (const Staged& staged : staging_) total += staged.bits.size();
  if (total == 0) return false;
  std::uint64_t left = pick % total;
  for (Staged& staged : staging_) {
    if (left >= staged.bits.size()) {
      left -= staged.bits.size();
      continue;
    }
    // One of 16 bits, which every wire dtype has.
    staged.bits[left] ^= std::uint32_t{1} << (mix_words(pick, total) & 15);
    return true;
  }
  return false;
}

TinyReplica::Verified TinyReplica::verify() const {
  const TinyHolding& here = holding();
  delta::ElementSum sum;
  Verified verified;
  for (const Staged& staged : staging_) {
    const std::vector<std::uint32_t>& recv = shape_->streams[staged.stream].recv;
    for (std::size_t i = 0; i < staged.bits.size(); ++i) {
      sum.add(delta::digest_of_key(shape_->keys[here.cells[recv[i]]], staged.bits[i]));
    }
    verified.elements += staged.bits.size();
  }
  verified.digest = sum.digest();
  return verified;
}

TinyReplica::Applied TinyReplica::apply(std::size_t at_most_tensors) {
  const TinyHolding& here = holding();
  const std::vector<TinyWrite>& writes = shape_->writes[rank_];
  Applied applied{0, here.parts.size()};
  std::vector<std::uint8_t> is_new(live_.size(), 0);
  std::size_t begun = 0;
  for (std::size_t i = 0; i < writes.size();) {
    const TinyWrite& group = writes[i];
    std::uint64_t written = 0;
    bool touched = false;
    for (; i < writes.size() && writes[i].tensor == group.tensor; ++i) {
      const TinyWrite& write = writes[i];
      const auto staged = std::ranges::lower_bound(staging_, write.stream, {}, &Staged::stream);
      if (!staged->landed) continue;
      if (!touched && begun++ == at_most_tensors) return applied;
      touched = true;
      const std::vector<std::uint32_t>& recv = shape_->streams[write.stream].recv;
      for (std::uint32_t k = write.first; k < write.first + write.count; ++k) {
        live_[recv[k]] = staged->bits[k];
        written += std::exchange(is_new[recv[k]], std::uint8_t{1}) == 0 ? 1 : 0;
      }
    }
    if (touched) part_digests_[group.part] = part_digest(here.parts[group.part]);
    if (written == here.parts[group.part].count) ++applied.written;
  }
  return applied;
}

Digest128 TinyReplica::digest() const {
  delta::ElementSum sum;
  for (const Digest128& part : part_digests_) sum.add(part);
  return sum.digest();
}

std::vector<std::uint64_t> TinyReplica::save() const {
  std::vector<std::uint64_t> words;
  append_words(words, live_);
  for (const Staged& staged : staging_) {
    words.push_back(staged.landed ? 1 : 0);
    if (staged.landed) append_words(words, staged.bits);
  }
  return words;
}

bool TinyReplica::restore(std::span<const std::uint64_t> words) {
  if (words.size() < words_for(live_.size())) return false;
  TinyReplica next = *this;
  take_words(words, next.live_);
  next.clear_staging();
  for (Staged& staged : next.staging_) {
    if (words.empty() || words.front() > 1) return false;
    staged.landed = words.front() == 1;
    words = words.subspan(1);
    if (!staged.landed) continue;
    staged.bits.resize(shape_->streams[staged.stream].recv.size());
    if (words.size() < words_for(staged.bits.size())) return false;
    take_words(words, staged.bits);
  }
  if (!words.empty()) return false;
  for (std::size_t i = 0; i < holding().parts.size(); ++i) {
    next.part_digests_[i] = next.part_digest(holding().parts[i]);
  }
  *this = std::move(next);
  return true;
}

}  // namespace areal::node
