// Compiled for AVX2 with FMA, so that written-out contraction is an instruction; nothing else is contracted.
#include "bench/delta_sweep.h"

#include <array>
#include <cmath>
#include <memory>
#include <thread>

#include "engine/delta/change_mask.h"
#include "engine/delta/cpu/change_finder.h"
#include "engine/delta/cpu/kernel.h"
#include "engine/delta/inversion.h"

namespace areal::bench {
namespace {

using namespace delta;  // NOLINT(google-build-using-namespace): this file is about nothing else.

constexpr std::uint32_t kBlock = kKernelBlock;
constexpr std::uint64_t kStep = 100;

struct Block {
  std::array<float, kBlock> before;
  std::array<float, kBlock> after;
  std::array<float, kBlock> exp_avg;
  std::array<float, kBlock> exp_avg_sq;
};

// murmur3's finaliser: a word for each counter, in a form that vectorises.
inline std::uint32_t mixed(std::uint32_t word) {
  word ^= word >> 16;
  word *= 0x85EBCA6BU;
  word ^= word >> 13;
  word *= 0xC2B2AE35U;
  return word ^ (word >> 16);
}

// In [0, 1).
inline float uniform(std::uint32_t word) { return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24F; }

// Of variance 1: six halves of three words.
inline float normal(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const std::uint32_t sum = (a & 0xFFFF) + (a >> 16) + (b & 0xFFFF) + (b >> 16) + (c & 0xFFFF) + (c >> 16);
  return (static_cast<float>(static_cast<std::int32_t>(sum)) * 0x1p-16F - 3.0F) * 1.41421356F;
}

// In line in a loop over one stratum, which vectorises.
template <Stratum stratum>
inline void draw_element(std::uint32_t seed, std::uint32_t i, Block& block) {
  const auto word = [&](std::uint32_t part) { return mixed(mixed(seed + i * 8U) + part * 0x9E3779B9U); };
  float weight = 0.02F * normal(word(0), word(1), word(2));
  const float scale = 1e-5F * (0.25F + 4.0F * uniform(word(3)));
  float m = scale * normal(word(4), word(5), word(6));
  float v = scale * scale * (0.5F + uniform(word(7)));
  const std::uint32_t offset = word(8) % 7U;
  if constexpr (stratum == Stratum::kMidpoint) {
    weight = float_of_bits((float_bits(weight) & 0xFFFF0000U) + 0x7FFDU + offset);
    // Steps of any size, down to a fraction of a neighbour.
    m *= float_of_bits((127U - word(9) % 24U) << 23);
  }
  if constexpr (stratum == Stratum::kEdge) {
    weight = float_of_bits((float_bits(weight) & 0xFF800000U) + (offset << 2) - 12U);
    m *= float_of_bits((127U - word(9) % 24U) << 23);
  }
  if constexpr (stratum == Stratum::kTiny) {
    weight = float_of_bits(word(10) & 0x80FFFFFFU);
    m = (word(11) & 3U) == 0 ? float_of_bits(word(12) & 0x807FFFFFU) : m * float_of_bits((127U - word(9) % 126U) << 23);
    v = (word(11) & 4U) == 0 ? float_of_bits(word(13) & 0x00FFFFFFU) : v;
  }
  block.before[i] = weight;
  block.exp_avg[i] = m;
  block.exp_avg_sq[i] = v;
}

template <Stratum stratum>
void draw_block(std::uint32_t seed, Block& block) {
  for (std::uint32_t i = 0; i < kBlock; ++i) draw_element<stratum>(seed, i, block);
}

void draw_block(Stratum stratum, std::uint32_t seed, Block& block) {
  switch (stratum) {
    case Stratum::kTraining:
      return draw_block<Stratum::kTraining>(seed, block);
    case Stratum::kMidpoint:
      return draw_block<Stratum::kMidpoint>(seed, block);
    case Stratum::kEdge:
      return draw_block<Stratum::kEdge>(seed, block);
    case Stratum::kTiny:
      return draw_block<Stratum::kTiny>(seed, block);
  }
}

template <StepOrder order, Contraction contraction>
void step_block(const OrderScalars& by, Block& block) {
  for (std::uint32_t i = 0; i < kBlock; ++i) {
    block.after[i] = stepped_weight<order, contraction>(by, block.before[i], block.exp_avg[i], block.exp_avg_sq[i]);
  }
}

using BlockStep = void (*)(const OrderScalars&, Block&);

template <Contraction contraction>
constexpr std::array<BlockStep, 7> block_steps() {
  return {&step_block<StepOrder::kTorch, contraction>,      &step_block<StepOrder::kTorchGpu, contraction>,
          &step_block<StepOrder::kCapturable, contraction>, &step_block<StepOrder::kTorchFused, contraction>,
          &step_block<StepOrder::kApex, contraction>,       &step_block<StepOrder::kInverse, contraction>,
          &step_block<StepOrder::kReciprocal, contraction>};
}

// What was marked against what changed.
SweepCounts judge(const ChangeRule& rule, const Block& block, ChangeFinder& finder, FoundChanges<std::int32_t>& found) {
  finder.find(rule, {block.after, block.exp_avg, block.exp_avg_sq, 0}, found);
  std::array<std::uint8_t, kBlock> marked{};
  for (const std::int32_t index : found.indices) marked[static_cast<std::size_t>(index)] = 1;
  SweepCounts counts;
  counts.weights = kBlock;
  for (std::uint32_t i = 0; i < kBlock; ++i) {
    const std::uint32_t changed = to_bf16(block.before[i]) != to_bf16(block.after[i]) ? 1 : 0;
    counts.changed += changed;
    counts.missed += changed & ~std::uint32_t{marked[i]} & 1U;
    counts.over += ~changed & std::uint32_t{marked[i]} & 1U;
  }
  return counts;
}

// The proven rule with a quarter of its error terms.
ChangeRule quarter_of(const AdamWSettings& settings) {
  ProvenScalars scalars = proven_scalars(proven_step(settings, kStep));
  scalars.moved_error *= 0.25F;
  scalars.still_error *= 0.25F;
  scalars.update_error *= 0.25F;
  return ChangeRule::proven(scalars);
}

class Worker {
 public:
  explicit Worker(const SweepCell& cell)
      : is_contracted_(cell.is_contracted),
        draws_(mixed(cell.number * 0x9E3779B9U)),
        settings_{.learning_rate = cell.learning_rate, .weight_decay = cell.weight_decay, .beta2 = 0.95},
        by_(order_scalars(settings_, kStep)),
        proven_(ChangeRule::proven(proven_step(settings_, kStep))),
        quarter_(quarter_of(settings_)),
        margin_(ChangeRule::margin(inversion_scalars(settings_, kStep))) {}

  void run(std::uint64_t number, SweepResult& result) {
    static constexpr auto kPlain = block_steps<Contraction::kOff>();
    static constexpr auto kContracted = block_steps<Contraction::kOn>();
    static constexpr auto kOther = block_steps<Contraction::kOther>();
    // Every eighth block is of a hard stratum; orders take turns.
    const bool is_hard = number % 8 == 7;
    const Stratum stratum = is_hard ? static_cast<Stratum>(1 + number / 8 % 3) : Stratum::kTraining;
    const std::size_t order = number / 24 % kPlain.size();
    draw_block(stratum, mixed(static_cast<std::uint32_t>(number) + draws_), *block_);
    const auto& steps = !is_contracted_ ? kPlain : (number / 168 % 2 == 0 ? kContracted : kOther);
    steps[order](by_, *block_);
    (is_hard ? result.proven_hard : result.proven).add(judge(proven_, *block_, finder_, found_));
    (is_hard ? result.margin_hard : result.margin).add(judge(margin_, *block_, finder_, found_));
    if (is_hard) result.quarter_hard.add(judge(quarter_, *block_, finder_, found_));
  }

 private:
  bool is_contracted_;
  std::uint32_t draws_;
  AdamWSettings settings_;
  OrderScalars by_;
  ChangeRule proven_;
  ChangeRule quarter_;
  ChangeRule margin_;
  ChangeFinder finder_;
  FoundChanges<std::int32_t> found_;
  std::unique_ptr<Block> block_ = std::make_unique<Block>();
};

}  // namespace

void SweepCounts::add(const SweepCounts& other) {
  weights += other.weights;
  changed += other.changed;
  missed += other.missed;
  over += other.over;
}

SweepResult sweep(const SweepCell& cell, std::uint64_t weights, std::uint32_t threads) {
  const std::uint64_t blocks = (weights + kBlock - 1) / kBlock;
  std::vector<SweepResult> parts(threads);
  const auto work = [&](std::uint32_t share) {
    Worker worker(cell);
    for (std::uint64_t number = share; number < blocks; number += threads) worker.run(number, parts[share]);
  };
  std::vector<std::thread> running;
  for (std::uint32_t share = 1; share < threads; ++share) running.emplace_back(work, share);
  work(0);
  for (std::thread& thread : running) thread.join();
  SweepResult sum;
  for (const SweepResult& part : parts) {
    sum.proven.add(part.proven);
    sum.proven_hard.add(part.proven_hard);
    sum.margin.add(part.margin);
    sum.margin_hard.add(part.margin_hard);
    sum.quarter_hard.add(part.quarter_hard);
  }
  return sum;
}

}  // namespace areal::bench
