#include "engine/node/tiny_trainer.h"

#include <algorithm>
#include <bit>

#include "engine/base/rng.h"
#include "engine/delta/bf16.h"
#include "engine/delta/element_digest.h"
#include "engine/node/tiny_words.h"

namespace areal::node {
namespace {

constexpr std::size_t kHeadWords = 3;  // Version, steps and changed elements.

// From 24 bits; in [-1/2, 1/2), exact in fp32.
float half_unit(std::uint64_t bits) {
  constexpr float kScale = 1.0F / 16777216.0F;
  return static_cast<float>(static_cast<std::int32_t>(bits & 0xFFFFFF) - 0x800000) * kScale;
}

}  // namespace

float initial_weight(std::uint64_t key) {
  constexpr std::uint64_t kLeastExponent = 127 - 8;
  const std::uint64_t sign = key & 1;
  const std::uint64_t exponent = kLeastExponent + ((key >> 1) & 3);
  const std::uint64_t fraction = (key >> 3) & 0x7FFFFF;
  return std::bit_cast<float>(static_cast<std::uint32_t>((sign << 31) | (exponent << 23) | fraction));
}

float gradient_of(std::uint64_t key, std::uint64_t step_key) {
  return half_unit(key >> 40) + half_unit(delta::mix_key(key, step_key));
}

TinyTrainer::TinyTrainer(TinyShapePtr shape, std::uint32_t train_rank)
    : shape_(std::move(shape)), rank_(train_rank), delta_(shape_, train_rank) {
  AREAL_CHECK(rank_ < shape_->trainers.size());
  load();
}

void TinyTrainer::load() {
  const TinyHolding& holding = shape_->trainers[rank_];
  version_ = 0;
  powers_ = {};
  delta_.forget();
  weights_.resize(holding.cells.size());
  for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] = initial_weight(shape_->keys[holding.cells[i]]);
  exp_avg_.assign(weights_.size(), 0.0F);
  exp_avg_sq_.assign(weights_.size(), 0.0F);
  wire_.assign(weights_.size(), 0);
  refresh();
  changed_ = 0;
}

void TinyTrainer::refresh() {
  const TinyHolding& holding = shape_->trainers[rank_];
  delta::ElementSum held;
  delta::ElementSum sent;
  changed_ = 0;
  sent_elements_ = 0;
  for (const TinyPart& part : holding.parts) {
    for (std::uint32_t i = part.first; i < part.first + part.count; ++i) {
      const std::uint32_t bits = wire_bits(weights_[i], part.storage, part.wire);
      const Digest128 digest = delta::digest_of_key(shape_->keys[holding.cells[i]], bits);
      changed_ += bits != wire_[i] ? 1 : 0;
      wire_[i] = bits;
      held.add(digest);
      sent.add(digest, holding.copies[i]);
      sent_elements_ += holding.copies[i];
    }
  }
  held_ = held.digest();
  sent_ = sent.digest();
  for (const TinyAlias& alias : holding.aliases) {
    const std::uint32_t first = holding.parts[alias.part].first;
    for (std::size_t i = 0; i < alias.keys.size(); ++i) {
      sent.add(delta::digest_of_key(alias.keys[i], wire_[first + i]), holding.copies[first + i]);
    }
  }
  due_ = sent.digest();
}

Digest128 TinyTrainer::advance(Version version, std::uint64_t batch_seed, std::uint64_t steps, double learning_rate) {
  const TinyHolding& holding = shape_->trainers[rank_];
  version_ = version;
  delta::AdamWSettings settings = shape_->optimizer;
  settings.learning_rate = learning_rate;
  std::vector<float> gradients(weights_.size());
  for (std::uint64_t step = 0; step < steps; ++step) {
    const delta::AdamWScalars scalars = powers_.next(settings);
    const std::uint64_t step_key = mix_words(batch_seed, powers_.steps());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      gradients[i] = gradient_of(shape_->keys[holding.cells[i]], step_key);
    }
    delta::adamw_step(scalars, {weights_, exp_avg_, exp_avg_sq_, gradients});
  }
  refresh();
  return held_;
}

TinyDelta::Inverted TinyTrainer::invert(std::uint32_t window, std::optional<double> learning_rate, bool forced) {
  std::optional<delta::InversionScalars> scalars;
  if (learning_rate.has_value() && powers_.steps() > 0) {
    delta::AdamWSettings settings = shape_->optimizer;
    settings.learning_rate = *learning_rate;
    scalars = powers_.inversion(settings);
  }
  return delta_.invert(window, state(), scalars, forced);
}

Packed TinyTrainer::pack() const {
  Packed packed;
  const proto::RankPlan plan = shape_->plan->rank(transfer_rank());
  packed.streams.reserve(plan.peer_count());
  for (std::size_t i = 0; i < plan.peer_count(); ++i) {
    const auto number = static_cast<std::size_t>(&plan.list(i) - shape_->plan->lists.data());
    const TinyStream& stream = shape_->streams[number];
    PackedStream& out = packed.streams.emplace_back();
    out.receiver = stream.receiver;
    out.bits.resize(stream.send.size());
    std::ranges::transform(stream.send, out.bits.begin(), [this](std::uint32_t local) { return wire_[local]; });
  }
  packed.elements = sent_elements_;
  packed.sent = sent_.low;
  packed.digest = due_;
  return packed;
}

Packed TinyTrainer::pack_delta() const {
  Packed packed;
  packed.is_delta = true;
  packed.digest = due_;
  const proto::RankPlan plan = shape_->plan->rank(transfer_rank());
  std::vector<PackedUpdates> updates = delta_.pack(wire_);
  const TinyHolding& holding = shape_->trainers[rank_];
  for (std::size_t i = 0; i < updates.size(); ++i) {
    packed.elements += updates[i].indices.size();
    packed.streams.push_back({plan.list(i).recv, {}, std::move(updates[i])});
  }
  delta::ElementSum sum;
  for (std::size_t i = 0; i < wire_.size(); ++i) {
    if (delta_.mask()[i] == 0) continue;
    sum.add(delta::digest_of_key(shape_->keys[holding.cells[i]], wire_[i]), holding.copies[i]);
  }
  packed.sent = sum.digest().low;
  return packed;
}

std::vector<std::uint64_t> TinyTrainer::save() const {
  std::vector<std::uint64_t> words{version_, powers_.steps(), changed_};
  words.reserve(kHeadWords + 3 * words_for(weights_.size()));
  append_words(words, weights_);
  append_words(words, exp_avg_);
  append_words(words, exp_avg_sq_);
  return words;
}

bool TinyTrainer::restore(std::span<const std::uint64_t> words) {
  if (words.size() != kHeadWords + 3 * words_for(weights_.size())) return false;
  version_ = words[0];
  powers_ = delta::AdamWPowers(shape_->optimizer, words[1]);
  const std::uint64_t changed = words[2];
  words = words.subspan(kHeadWords);
  take_words(words, weights_);
  take_words(words, exp_avg_);
  take_words(words, exp_avg_sq_);
  refresh();
  changed_ = changed;
  delta_.forget();
  return true;
}

}  // namespace areal::node
