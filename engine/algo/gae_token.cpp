// Advantages by token, eight rows at a time.
//
// The recursion of one row is a chain: each step waits for the one before. Rows do not depend on each other, so eight
// of them step together, from their ends: four in the lanes of a vector, two vectors side by side. A block of columns
// is turned around into a scratch first, row by row, and back afterwards: rows a power of two apart would else push
// each other out of the cache with every step. Lanes round as scalars do: the result is that of one row after the
// other, bit for bit.
#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/algo/gae.h"

namespace areal::algo {

namespace {

constexpr std::size_t kLanes = 4;
constexpr std::size_t kSets = 2;
constexpr std::size_t kRows = kLanes * kSets;
constexpr std::size_t kColumns = 1024;  // Of a block, at most: the scratch stays in the second cache.
constexpr std::size_t kBytes = 16;

using Floats [[gnu::vector_size(kBytes)]] = float;
using Words [[gnu::vector_size(kBytes)]] = std::uint32_t;

static_assert(std::endian::native == std::endian::little, "the masks of four elements are read as one word");

// A block of columns, lanes side by side. Rewards become advantages, values become returns.
struct Scratch {
  Floats reward[kSets][kColumns];
  Floats value[kSets][kColumns];
  Words trained[kSets][kColumns];
};

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

// Where each of the rows of a set has its block.
using Places = std::size_t[kLanes];

void gather(std::span<const float> from, const Places& at, std::size_t columns, Floats* block) {
  for (std::size_t column = 0; column < columns; column += kLanes) {
    Tile tile{};
    for (std::size_t lane = 0; lane < kLanes; ++lane) tile.line[lane] = load(from.data() + at[lane] + column);
    tile = transposed(tile);
    for (std::size_t lane = 0; lane < kLanes; ++lane) block[column + lane] = tile.line[lane];
  }
}

void gather(Mask from, const Places& at, std::size_t columns, Words* block) {
  for (std::size_t column = 0; column < columns; column += kLanes) {
    Words masks{};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::uint32_t mask = 0;
      std::memcpy(&mask, from.data() + at[lane] + column, kLanes);
      masks[lane] = mask;
    }
    for (std::size_t byte = 0; byte < kLanes; ++byte) {
      block[column + byte] = (masks >> (8 * static_cast<std::uint32_t>(byte))) & 0xFFU;
    }
  }
}

void scatter(const Floats* block, const Places& at, std::size_t columns, std::span<float> to) {
  for (std::size_t column = 0; column < columns; column += kLanes) {
    Tile tile{};
    for (std::size_t lane = 0; lane < kLanes; ++lane) tile.line[lane] = block[column + lane];
    tile = transposed(tile);
    for (std::size_t lane = 0; lane < kLanes; ++lane) store(to.data() + at[lane] + column, tile.line[lane]);
  }
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

// The state of all rows, in lanes.
struct State {
  Floats next_value[kSets];
  Floats last[kSets];
  Floats decay[kSets];
  Floats discount;
};

void step_block(State& state, std::size_t columns, Scratch& scratch) {
  for (std::size_t column = columns; column-- > 0;) {
    for (std::size_t set = 0; set < kSets; ++set) {
      const Words trained = scratch.trained[set][column];
      const Floats value = scratch.value[set][column];
      const Floats delta = scratch.reward[set][column] + state.discount * state.next_value[set] - value;
      const Floats next = delta + state.decay[set] * state.last[set];
      state.last[set] = trained != 0U ? next : state.last[set];
      state.next_value[set] = trained != 0U ? value : state.next_value[set];
      scratch.reward[set][column] = state.last[set];
      scratch.value[set][column] = state.last[set] + value;
    }
  }
}

// `steps` steps of each of eight rows, a multiple of four.
void step_blocks(const GaeInput& input, GaeOutput output, std::size_t row, Chain* chains, std::size_t steps) {
  State state{};
  Places places[kSets];
  for (std::size_t lane = 0; lane < kRows; ++lane) {
    const std::size_t set = lane / kLanes;
    state.next_value[set][lane % kLanes] = chains[lane].next_value;
    state.last[set][lane % kLanes] = chains[lane].last;
    state.decay[set][lane % kLanes] = input.decay[row + lane];
    state.discount[lane % kLanes] = input.discount;
    places[set][lane % kLanes] = chains[lane].at;
  }
  Scratch scratch;  // NOLINT(cppcoreguidelines-pro-type-member-init): a block is written before it is read.
  while (steps > 0) {
    const std::size_t columns = std::min(steps, kColumns);
    steps -= columns;
    for (std::size_t set = 0; set < kSets; ++set) {
      for (std::size_t& at : places[set]) at -= columns;
      gather(input.rewards, places[set], columns, scratch.reward[set]);
      gather(input.values, places[set], columns, scratch.value[set]);
      gather(input.trained, places[set], columns, scratch.trained[set]);
    }
    step_block(state, columns, scratch);
    for (std::size_t set = 0; set < kSets; ++set) {
      scatter(scratch.reward[set], places[set], columns, output.advantages);
      scatter(scratch.value[set], places[set], columns, output.returns);
    }
  }
  for (std::size_t lane = 0; lane < kRows; ++lane) {
    const std::size_t set = lane / kLanes;
    chains[lane] = {places[set][lane % kLanes], state.next_value[set][lane % kLanes], state.last[set][lane % kLanes]};
  }
}

// The last element of a row has no step.
Chain start(const GaeInput& input, GaeOutput output, std::size_t row) {
  Chain chain{input.rows.end(row), input.bootstrap[row], 0};
  if (input.rows.length(row) == 0) return chain;
  --chain.at;
  output.advantages[chain.at] = 0;
  output.returns[chain.at] = input.values[chain.at];
  return chain;
}

// Eight rows: together as far as the shortest of them reaches, then each alone.
void step_rows(const GaeInput& input, GaeOutput output, std::size_t row) {
  Chain chains[kRows];
  std::size_t shared = static_cast<std::size_t>(-1);
  for (std::size_t lane = 0; lane < kRows; ++lane) {
    chains[lane] = start(input, output, row + lane);
    shared = std::min(shared, chains[lane].at - input.rows.begin(row + lane));
  }
  const std::size_t before = shared % kLanes;
  for (std::size_t lane = 0; lane < kRows; ++lane) step_one(input, output, row + lane, chains[lane], before);
  step_blocks(input, output, row, chains, shared - before);
  for (std::size_t lane = 0; lane < kRows; ++lane) {
    step_one(input, output, row + lane, chains[lane], chains[lane].at - input.rows.begin(row + lane));
  }
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
  for (; row + kRows <= input.rows.size(); row += kRows) step_rows(input, output, row);
  for (; row < input.rows.size(); ++row) {
    Chain chain = start(input, output, row);
    step_one(input, output, row, chain, chain.at - input.rows.begin(row));
  }
}

}  // namespace areal::algo
