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

TinyReplica::TinyReplica(TinyShapePtr shape, std::uint32_t engine, std::uint32_t infer_rank, AliasStorage storage)
    : shape_(std::move(shape)), rank_(shape_->world().infer_rank(infer_rank, engine)), storage_(storage) {
  AREAL_CHECK(engine < shape_->world().engines);
  AREAL_CHECK(infer_rank < shape_->world().instance());
  const proto::RankPlan plan = shape_->plan->rank(rank_);
  for (std::size_t i = 0; i < plan.peer_count(); ++i) {
    staging_.push_back({static_cast<std::uint32_t>(&plan.list(i) - shape_->plan->lists.data()), false, {}});
  }
  load();
}

const TinyHolding& TinyReplica::holding() const { return shape_->replicas[rank_ % shape_->world().instance()]; }

Digest128 TinyReplica::part_digest(std::size_t index) const {
  const TinyHolding& here = holding();
  const TinyPart& part = here.parts[index];
  delta::ElementSum sum;
  for (std::uint32_t i = part.first; i < part.first + part.count; ++i) {
    sum.add(delta::digest_of_key(shape_->keys[here.cells[i]], live_[i]));
  }
  for (std::size_t a = 0; a < here.aliases.size(); ++a) {
    const TinyAlias& alias = here.aliases[a];
    if (alias.part != index) continue;
    const std::uint32_t* bits = clones_.empty() ? live_.data() + part.first : clones_[a].data();
    for (std::size_t i = 0; i < alias.keys.size(); ++i) sum.add(delta::digest_of_key(alias.keys[i], bits[i]));
  }
  return sum.digest();
}

void TinyReplica::fill_clones() {
  clones_.clear();
  if (storage_ == AliasStorage::kShared) return;
  for (const TinyAlias& alias : holding().aliases) {
    const auto source = std::span(live_).subspan(holding().parts[alias.part].first, alias.keys.size());
    clones_.emplace_back(source.begin(), source.end());
  }
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
  }
  fill_clones();
  for (std::size_t i = 0; i < here.parts.size(); ++i) part_digests_.push_back(part_digest(i));
}

TinyReplica::Staged* TinyReplica::staged_of(std::uint32_t sender) {
  const auto place = std::ranges::find_if(
      staging_, [&](const Staged& staged) { return shape_->streams[staged.stream].sender == sender; });
  return place != staging_.end() ? &*place : nullptr;
}

bool TinyReplica::land(std::uint32_t sender, std::span<const std::uint32_t> bits) {
  Staged* staged = staged_of(sender);
  if (staged == nullptr || bits.size() != shape_->streams[staged->stream].recv.size()) return false;
  *staged = {staged->stream, true, false, {bits.begin(), bits.end()}, {}, {}};
  return true;
}

bool TinyReplica::land(std::uint32_t sender, const PackedUpdates& updates) {
  Staged* staged = staged_of(sender);
  if (staged == nullptr) return false;
  const std::vector<TinyOp>& ops = shape_->streams[staged->stream].ops;
  if (updates.counts.size() != ops.size() || updates.bits.size() != updates.indices.size()) return false;
  Staged next{staged->stream, true, true, updates.bits, {}, {0}};
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const TinyPart& part = holding().parts[ops[i].recv_part];
    const std::uint32_t start = next.starts.back();
    const std::uint64_t end = std::uint64_t{start} + updates.counts[i];
    if (end > updates.indices.size()) return false;
    for (std::uint64_t k = start; k < end; ++k) {
      const auto index = static_cast<std::uint32_t>(updates.indices[k]);
      if (index >= part.count) return false;
      next.targets.push_back(part.first + index);
    }
    next.starts.push_back(static_cast<std::uint32_t>(end));
  }
  if (next.targets.size() != updates.indices.size()) return false;
  *staged = std::move(next);
  return true;
}

void TinyReplica::clear_staging() {
  for (Staged& staged : staging_) {
    staged = {staged.stream, false, false, {}, {}, {}};
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
      const std::uint32_t target = staged.is_delta ? staged.targets[i] : recv[i];
      sum.add(delta::digest_of_key(shape_->keys[here.cells[target]], staged.bits[i]));
    }
    verified.elements += staged.bits.size();
  }
  verified.digest = sum.digest();
  return verified;
}

std::uint64_t TinyReplica::write(const TinyWrite& write, const Staged& staged, std::vector<std::uint8_t>& is_new) {
  if (staged.is_delta) {
    for (std::uint32_t k = staged.starts[write.op]; k < staged.starts[write.op + 1]; ++k) {
      live_[staged.targets[k]] = staged.bits[k];
    }
    return write.count;  // What is in no mask is as it should be.
  }
  const std::vector<std::uint32_t>& recv = shape_->streams[write.stream].recv;
  std::uint64_t written = 0;
  for (std::uint32_t k = write.first; k < write.first + write.count; ++k) {
    live_[recv[k]] = staged.bits[k];
    written += std::exchange(is_new[recv[k]], std::uint8_t{1}) == 0 ? 1 : 0;
  }
  const std::uint32_t start = holding().parts[write.part].first;
  for (std::size_t a = 0; a < clones_.size(); ++a) {
    if (holding().aliases[a].part != write.part) continue;
    for (std::uint32_t k = write.first; k < write.first + write.count; ++k)
      clones_[a][recv[k] - start] = staged.bits[k];
  }
  return written;
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
      const auto staged = std::ranges::lower_bound(staging_, writes[i].stream, {}, &Staged::stream);
      if (!staged->landed) continue;
      if (!touched && begun++ == at_most_tensors) return applied;
      touched = true;
      written += write(writes[i], *staged, is_new);
    }
    if (touched) part_digests_[group.part] = part_digest(group.part);
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
  for (const std::vector<std::uint32_t>& clone : clones_) append_words(words, clone);
  for (const Staged& staged : staging_) {
    words.push_back((staged.landed ? 1U : 0U) | (staged.is_delta ? 2U : 0U));
    if (!staged.landed) continue;
    if (staged.is_delta) {
      words.push_back(staged.bits.size());
      append_words(words, staged.targets);
      append_words(words, staged.starts);
    }
    append_words(words, staged.bits);
  }
  return words;
}

bool TinyReplica::take_updates(std::span<const std::uint64_t>& words, const TinyStream& stream, Staged& staged) {
  if (words.empty() || words.front() > live_.size() * stream.ops.size()) return false;
  staged.bits.resize(words.front());
  staged.targets.resize(words.front());
  staged.starts.resize(stream.ops.size() + 1);
  words = words.subspan(1);
  if (words.size() < words_for(staged.targets.size()) + words_for(staged.starts.size())) return false;
  take_words(words, staged.targets);
  take_words(words, staged.starts);
  const bool fits =
      staged.starts.front() == 0 && staged.starts.back() == staged.bits.size() && std::ranges::is_sorted(staged.starts);
  return fits && std::ranges::all_of(staged.targets, [&](std::uint32_t target) { return target < live_.size(); });
}

bool TinyReplica::restore(std::span<const std::uint64_t> words) {
  if (words.size() < words_for(live_.size())) return false;
  TinyReplica next = *this;
  take_words(words, next.live_);
  for (std::vector<std::uint32_t>& clone : next.clones_) {
    if (words.size() < words_for(clone.size())) return false;
    take_words(words, clone);
  }
  next.clear_staging();
  for (Staged& staged : next.staging_) {
    if (words.empty() || words.front() == 2 || words.front() > 3) return false;
    staged.landed = words.front() != 0;
    staged.is_delta = words.front() == 3;
    words = words.subspan(1);
    if (!staged.landed) continue;
    staged.bits.resize(shape_->streams[staged.stream].recv.size());
    if (staged.is_delta && !take_updates(words, shape_->streams[staged.stream], staged)) return false;
    if (words.size() < words_for(staged.bits.size())) return false;
    take_words(words, staged.bits);
  }
  if (!words.empty()) return false;
  for (std::size_t i = 0; i < holding().parts.size(); ++i) {
    next.part_digests_[i] = next.part_digest(i);
  }
  *this = std::move(next);
  return true;
}

}  // namespace areal::node
