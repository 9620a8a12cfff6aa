// What is coded is decoded again, and all ways to code it give the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "engine/delta/wire/bf16_step.h"
#include "engine/delta/wire/decoder.h"
#include "tests/codec/sample_deltas.h"

namespace areal::delta::wire {
namespace {

using tests::changes_of;
using tests::make_sample;
using tests::SampleTensor;
using tests::Spread;
using tests::Steps;
using Bytes = std::vector<std::uint8_t>;

constexpr ValueKind kAllKinds[] = {{Form::kPlain, 2}, {Form::kPlain, 4}, {Form::kSteps, 2}};

std::vector<TensorBase> bases_of(const std::vector<SampleTensor>& tensors) {
  std::vector<TensorBase> bases;
  for (const SampleTensor& tensor : tensors) bases.push_back({tensor.elements, tensor.base});
  return bases;
}

template <class Index, class Value>
void expect_decoded(const Bytes& bytes, const std::vector<SampleTensor>& tensors, Path path) {
  const auto decoded = decode<Index, Value>(bytes, bases_of(tensors), path);
  ASSERT_TRUE(decoded) << decoded.error().detail;
  ASSERT_EQ(decoded->offsets.size(), tensors.size() + 1);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const std::uint64_t begin = decoded->offsets[t];
    const std::uint64_t count = decoded->offsets[t + 1] - begin;
    EXPECT_TRUE(std::ranges::equal(std::span(decoded->indices).subspan(begin, count), tensors[t].indices));
    const auto values = std::span(decoded->values).subspan(begin, count);
    EXPECT_TRUE(sizeof(Value) == 2 ? std::ranges::equal(values, tensors[t].half)
                                   : std::ranges::equal(values, tensors[t].word));
  }
}

// All kinds of values, both widths of indices, both paths, there and back.
void expect_round_trip(const std::vector<SampleTensor>& tensors) {
  for (const ValueKind kind : kAllKinds) {
    std::vector<TensorChanges> changes = changes_of(tensors, kind);
    const auto bytes = encode(changes, kind);
    ASSERT_TRUE(bytes) << bytes.error().detail;
    const auto by_reference = encode(changes, kind, Path::kReference);
    ASSERT_TRUE(by_reference);
    EXPECT_EQ(*bytes, *by_reference);
    std::vector<std::vector<std::int32_t>> narrow;
    for (const SampleTensor& tensor : tensors) narrow.push_back(tests::narrow_of(tensor));
    for (std::size_t t = 0; t < tensors.size(); ++t) changes[t].wide = {}, changes[t].narrow = narrow[t];
    const auto by_narrow = encode(changes, kind);
    ASSERT_TRUE(by_narrow);
    EXPECT_EQ(*bytes, *by_narrow);
    for (const Path path : {Path::kFast, Path::kReference}) {
      if (kind.value_bytes == 2) {
        expect_decoded<std::int32_t, std::uint16_t>(*bytes, tensors, path);
        expect_decoded<std::int64_t, std::uint16_t>(*bytes, tensors, path);
      } else {
        expect_decoded<std::int32_t, std::uint32_t>(*bytes, tensors, path);
        expect_decoded<std::int64_t, std::uint32_t>(*bytes, tensors, path);
      }
    }
  }
}

TEST(WireCodec, WhatIsCodedIsDecodedAgain) {
  std::uint64_t seed = 1;
  for (const Spread spread : {Spread::kEven, Spread::kRuns, Spread::kFew, Spread::kAll}) {
    for (const Steps steps : {Steps::kOne, Steps::kTail, Steps::kAny}) {
      for (const std::uint64_t one_in : {1, 3, 10, 100, 1000}) {
        expect_round_trip({make_sample(20'000, {spread, steps, one_in}, ++seed)});
      }
    }
  }
}

TEST(WireCodec, SizesAroundABlock) {
  for (const std::uint64_t elements : {0, 1, 2, 3, 31, 32, 33, 1023, 1024, 1025, 2047, 2048, 2049, 3072}) {
    expect_round_trip({make_sample(elements, {Spread::kAll, Steps::kTail, 1}, elements)});
  }
}

TEST(WireCodec, ManyTensorsSomeWithoutChanges) {
  std::vector<SampleTensor> tensors;
  for (std::uint64_t t = 0; t < 60; ++t) {
    const std::uint64_t elements = t % 5 == 0 ? 0 : mix_words(3, t) % (t % 10 == 1 ? 9000 : 300);
    tensors.push_back(make_sample(elements, {Spread::kEven, Steps::kTail, 1 + t % 7 * 40}, t));
  }
  expect_round_trip(tensors);
  expect_round_trip({});
}

// Every pattern of base and of value meets special ones and its neighbours.
TEST(WireCodec, EveryPatternOfBf16) {
  for (std::uint32_t special : tests::kSpecialBf16) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      ASSERT_EQ(step_from(special, step_number(special, bits)), bits);
      ASSERT_EQ(step_from(bits, step_number(bits, special)), special);
      ASSERT_LT(step_number(special, bits), 0x10000U);
    }
  }
  SampleTensor all{.elements = 4 * 0x10000};
  for (std::uint32_t i = 0; i < all.elements; ++i) {
    const std::uint32_t bits = i & 0xFFFFU;
    const std::uint32_t moved[] = {bits + 1, bits - 1, bits ^ 0x8000U, 0x7FC0};
    all.base.push_back(static_cast<std::uint16_t>(bits));
    all.indices.push_back(i);
    all.half.push_back(static_cast<std::uint16_t>(moved[i >> 16]));
    all.word.push_back(bits << 16);
  }
  expect_round_trip({all});
}

TEST(WireCodec, NeighboursInOrderAreNeighboursInSteps) {
  EXPECT_EQ(step_number(0x3F80, 0x3F81), 1U);
  EXPECT_EQ(step_number(0x3F80, 0x3F7F), 0U);
  EXPECT_EQ(step_number(0xBF80, 0xBF7F), 1U);  // Up, towards zero.
  EXPECT_EQ(step_number(0x0000, 0x8000), 0U);  // -0 lies below +0.
  EXPECT_EQ(step_number(0x0000, 0x8001), 2U);
  EXPECT_EQ(step_number(0x3F80, 0x3F80), 0xFFFFU);  // None comes last.
}

// Indices that need 64 bits, gaps of every size in one block.
TEST(WireCodec, WideIndices) {
  constexpr std::uint64_t kElements = 1ULL << 62;
  std::vector<std::int64_t> indices{0};
  for (std::uint32_t bit = 0; bit < 61; ++bit) indices.push_back(indices.back() + (std::int64_t{1} << bit));
  indices.push_back(static_cast<std::int64_t>(kElements) - 1);
  std::vector<std::uint16_t> values(indices.size());
  std::iota(values.begin(), values.end(), std::uint16_t{0x3F00});
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{40}, indices.size()}) {
    for (const bool is_from_end : {false, true}) {
      const std::size_t skip = is_from_end ? indices.size() - count : 0;
      const TensorChanges changes{.elements = kElements,
                                  .wide = std::span(indices).subspan(skip, count),
                                  .half = std::span(values).subspan(skip, count)};
      const auto bytes = encode(std::span(&changes, 1), {});
      ASSERT_TRUE(bytes);
      EXPECT_EQ(*bytes, *encode(std::span(&changes, 1), {}, Path::kReference));
      const TensorBase base{kElements, {}};
      for (const Path path : {Path::kFast, Path::kReference}) {
        const auto decoded = decode<std::int64_t, std::uint16_t>(*bytes, std::span(&base, 1), path);
        ASSERT_TRUE(decoded) << decoded.error().detail;
        EXPECT_TRUE(std::ranges::equal(decoded->indices, changes.wide));
        EXPECT_TRUE(std::ranges::equal(decoded->values, changes.half));
      }
      EXPECT_FALSE((decode<std::int32_t, std::uint16_t>(*bytes, std::span(&base, 1))));
    }
  }
}

// Blocks of huge gaps among small ones: no block may be longer than the format allows.
TEST(WireCodec, WorstBlocksStayInsideTheirLimit) {
  Rng rng(5);
  for (std::uint32_t round = 0; round < 200; ++round) {
    const std::uint64_t most = 1ULL << (1 + rng.draw_below(51));
    const std::uint64_t odd_one_in = 1 + rng.draw_below(50);
    std::vector<std::int64_t> indices{0};
    std::vector<std::uint32_t> values{0};
    while (indices.size() < kBlockChanges) {
      std::uint64_t gap = 1 + rng.draw_below(most);
      if (!rng.draw_chance(1, odd_one_in)) gap = 1;
      indices.push_back(indices.back() + static_cast<std::int64_t>(gap));
      values.push_back(static_cast<std::uint32_t>(rng.draw_u64()));
    }
    const TensorChanges changes{.elements = 1ULL << 62, .wide = indices, .word = values};
    const auto bytes = encode(std::span(&changes, 1), {Form::kPlain, 4});
    ASSERT_TRUE(bytes);
    ASSERT_LE(bytes->size(), 8U * (kHeaderUnits + 4 + kMostBlockUnits));
    const TensorBase base{1ULL << 62, {}};
    const auto decoded = decode<std::int64_t, std::uint32_t>(*bytes, std::span(&base, 1));
    ASSERT_TRUE(decoded) << decoded.error().detail;
    EXPECT_TRUE(decoded->indices == indices && decoded->values == values);
  }
}

// Bytes for each change, far below 6: docs/delta-wire.md.
TEST(WireCodec, OnePercentTakesLittle) {
  const std::vector<SampleTensor> tensors{make_sample(2'000'000, {Spread::kEven, Steps::kTail, 100}, 9)};
  const auto bytes_a_change = [&](ValueKind kind) {
    const auto bytes = encode(changes_of(tensors, kind), kind);
    return bytes ? static_cast<double>(bytes->size()) / static_cast<double>(tensors[0].indices.size()) : 99.0;
  };
  EXPECT_LT(bytes_a_change({Form::kSteps, 2}), 1.5);
  EXPECT_LT(bytes_a_change({Form::kPlain, 2}), 3.1);
  EXPECT_LT(bytes_a_change({Form::kPlain, 4}), 5.1);
}

// Where coding does not pay, values stand as they are: never more than a little above that.
TEST(WireCodec, StepsThatAreNoneCostNoMoreThanValues) {
  const std::vector<SampleTensor> tensors{make_sample(100'000, {Spread::kEven, Steps::kAny, 10}, 9)};
  const auto plain = encode(changes_of(tensors, {}), {});
  const auto steps = encode(changes_of(tensors, {Form::kSteps, 2}), {Form::kSteps, 2});
  ASSERT_TRUE(plain && steps);
  EXPECT_LE(steps->size(), plain->size());
}

// Equal on every machine and compiler; it changes only when the format does, and then its magic has to.
TEST(WireCodec, BytesStayWhatTheyAre) {
  const std::vector<SampleTensor> tensors{make_sample(50'000, {Spread::kEven, Steps::kTail, 50}, 1),
                                          make_sample(5'000, {Spread::kRuns, Steps::kAny, 3}, 2)};
  std::uint64_t sum = 0;
  for (const ValueKind kind : kAllKinds) {
    const auto bytes = encode(changes_of(tensors, kind), kind);
    ASSERT_TRUE(bytes);
    for (std::size_t i = 0; i < bytes->size(); ++i) sum = mix_words(sum, (*bytes)[i]);
  }
  EXPECT_EQ(sum, 7343268480215710806ULL);
}

}  // namespace
}  // namespace areal::delta::wire
