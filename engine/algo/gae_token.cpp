// Advantages by token, four rows at a time.
//
// The recursion of one row is a chain: each step waits for the one before. Rows do not depend on each other, so four of
// them step together, from their ends, in the four lanes of a vector; tiles of 4 x 4 elements are turned around between
// memory and lanes. Two such sets run side by side, so that one's chain fills the other's waits. Lanes round as scalars
// do: the result is that of one row after the other, bit for bit.
#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/algo/gae.h"

namespace areal::algo {

namespace {

constexpr std::size_t kLanes = 4;
constexpr std::size_t kBytes = 16;

using Floats [[gnu::vector_size(kBytes)]] = float;
using Words [[gnu::vector_size(kBytes)]] = std::uint32_t;

static_assert(std::endian::native == std::endian::little, "the masks of four elements are read as one word");

struct Tile {
  Floats line[kLanes];
};

Floats load(const float* from) {
  Floats value;
  std::memcpy(&value, from, kBytes);
  return value;
}

void store(float* to, Floats value) { std::memcpy(to, &value, kBytes); }

Tile transposed(const Tile& tile) {
  const Floats ab_low = __builtin_shufflevector(tile.line[0], tile.line[1], 0, 4, 1, 5);
  const Floats ab_high = __builtin_shufflevector(tile.line[0], tile.line[1], 2, 6, 3, 7);
  const Floats cd_low = __builtin_shufflevector(tile.line[2], tile.line[3], 0, 4, 1, 5);
  const Floats cd_high = __builtin_shufflevector(tile.line[2], tile.line[3], 2, 6, 3, 7);
  return {{__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
           __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
           __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)}};
}

// The state of a row between two steps, and where its next element is: one behind `at`.
struct Chain {
  std::size_t at = 0;
  float next_value = 0;
  float last = 0;
};

void step_one(const GaeInput& input, GaeOutput output, std::size_t row, Chain& chain, std::size_t steps) {
  const float decay = input.decay[row];
  for (; steps > 0; --steps) {
    const std::size_t at = --chain.at;
    const float value = input.values[at];
    if (input.trained[at] != 0) {
      const float delta = input.rewards[at] + input.discount * chain.next_value - value;
      chain.last = delta + decay * chain.last;
      chain.next_value = value;
    }
    output.advantages[at] = chain.last;
    output.returns[at] = chain.last + value;
  }
}

// Four rows in lanes.
struct ChainSet {
  std::size_t at[kLanes];
  Floats next_value;
  Floats last;
  Floats decay;
};

ChainSet joined(const GaeInput& input, std::size_t row, const Chain* chains) {
  ChainSet set{};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    set.at[lane] = chains[lane].at;
    set.next_value[lane] = chains[lane].next_value;
    set.last[lane] = chains[lane].last;
    set.decay[lane] = input.decay[row + lane];
  }
  return set;
}

void split(const ChainSet& set, Chain* chains) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) chains[lane] = {set.at[lane], set.next_value[lane], set.last[lane]};
}

// Four steps of each of four rows.
void step_tile(const GaeInput& input, GaeOutput output, Floats discount, ChainSet& set) {
  Tile rewards;
  Tile values;
  Words masks{};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    set.at[lane] -= kLanes;
    rewards.line[lane] = load(&input.rewards[set.at[lane]]);
    values.line[lane] = load(&input.values[set.at[lane]]);
    std::uint32_t mask = 0;
    std::memcpy(&mask, &input.trained[set.at[lane]], kLanes);
    masks[lane] = mask;
  }
  rewards = transposed(rewards);
  values = transposed(values);
  Tile advantages;
  Tile returns;
  for (std::size_t column = kLanes; column-- > 0;) {
    const Words trained = (masks >> (8 * static_cast<std::uint32_t>(column))) & 0xFFU;
    const Floats value = values.line[column];
    const Floats delta = rewards.line[column] + discount * set.next_value - value;
    const Floats next = delta + set.decay * set.last;
    set.last = trained != 0U ? next : set.last;
    set.next_value = trained != 0U ? value : set.next_value;
    advantages.line[column] = set.last;
    returns.line[column] = set.last + value;
  }
  advantages = transposed(advantages);
  returns = transposed(returns);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    store(&output.advantages[set.at[lane]], advantages.line[lane]);
    store(&output.returns[set.at[lane]], returns.line[lane]);
  }
}

// `kSets` sets of four rows, as far as the shortest of them reaches; then each row alone.
template <std::size_t kSets>
void step_rows(const GaeInput& input, GaeOutput output, std::size_t row) {
  Chain chains[kSets * kLanes];
  std::size_t shared = static_cast<std::size_t>(-1);
  for (std::size_t lane = 0; lane < kSets * kLanes; ++lane) {
    const std::size_t length = input.rows.length(row + lane);
    const std::size_t end = input.rows.end(row + lane);
    chains[lane] = {end, input.bootstrap[row + lane], 0};
    shared = std::min(shared, length == 0 ? 0 : length - 1);
    if (length == 0) continue;
    output.advantages[end - 1] = 0;
    output.returns[end - 1] = input.values[end - 1];
    chains[lane].at = end - 1;
  }
  const Floats discount = {input.discount, input.discount, input.discount, input.discount};
  ChainSet sets[kSets];
  for (std::size_t set = 0; set < kSets; ++set) sets[set] = joined(input, row + set * kLanes, chains + set * kLanes);
  for (std::size_t tile = 0; tile < shared / kLanes; ++tile) {
    for (std::size_t set = 0; set < kSets; ++set) step_tile(input, output, discount, sets[set]);
  }
  for (std::size_t set = 0; set < kSets; ++set) split(sets[set], chains + set * kLanes);
  for (std::size_t lane = 0; lane < kSets * kLanes; ++lane) {
    step_one(input, output, row + lane, chains[lane], chains[lane].at - input.rows.begin(row + lane));
  }
}

void step_row(const GaeInput& input, GaeOutput output, std::size_t row) {
  if (input.rows.length(row) == 0) return;
  Chain chain{input.rows.end(row) - 1, input.bootstrap[row], 0};
  output.advantages[chain.at] = 0;
  output.returns[chain.at] = input.values[chain.at];
  step_one(input, output, row, chain, input.rows.length(row) - 1);
}

}  // namespace

void gae_by_token(const GaeInput& input, GaeOutput output) {
  const std::size_t elements = input.rows.elements();
  AREAL_CHECK(input.rewards.size() == elements);
  AREAL_CHECK(input.values.size() == elements);
  AREAL_CHECK(input.trained.size() == elements);
  AREAL_CHECK(input.bootstrap.size() == input.rows.size());
  AREAL_CHECK(input.decay.size() == input.rows.size());
  AREAL_CHECK(output.advantages.size() == elements);
  AREAL_CHECK(output.returns.size() == elements);
  std::size_t row = 0;
  for (; row + 2 * kLanes <= input.rows.size(); row += 2 * kLanes) step_rows<2>(input, output, row);
  for (; row + kLanes <= input.rows.size(); row += kLanes) step_rows<1>(input, output, row);
  for (; row < input.rows.size(); ++row) step_row(input, output, row);
}

}  // namespace areal::algo
