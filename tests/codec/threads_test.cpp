// Any number of threads codes to the bytes of one, decodes to the same, and names the same wrong block.
#include <gtest/gtest.h>

#include "engine/delta/cpu/wire_threads.h"
#include "tests/codec/sample_deltas.h"

namespace areal::delta {
namespace {

using tests::changes_of;
using tests::make_sample;
using tests::SampleTensor;
using tests::Spread;
using tests::Steps;
using Bytes = std::vector<std::uint8_t>;

constexpr wire::ValueKind kSteps{wire::Form::kSteps, 2};

TEST(WireThreads, AnyNumberGivesTheBytesOfOne) {
  std::vector<SampleTensor> tensors{make_sample(90'000, {Spread::kAll, Steps::kTail, 1}, 1), SampleTensor{},
                                    make_sample(200'000, {Spread::kEven, Steps::kTail, 3}, 2)};
  std::vector<wire::TensorBase> bases;
  for (const SampleTensor& tensor : tensors) bases.push_back({tensor.elements, tensor.base});
  const auto alone = wire::encode(changes_of(tensors, kSteps), kSteps);
  ASSERT_TRUE(alone);
  const auto one = wire::decode<std::int64_t, std::uint16_t>(*alone, bases);
  ASSERT_TRUE(one);
  Bytes damaged = *alone;
  damaged[damaged.size() / 2] ^= 1;
  damaged[damaged.size() - 100] ^= 1;
  const auto refusal = wire::decode<std::int64_t, std::uint16_t>(damaged, bases);
  ASSERT_FALSE(refusal);
  for (const std::uint32_t threads : {1U, 2U, 3U, 7U, 50U}) {
    const auto bytes = encode_by_threads(changes_of(tensors, kSteps), kSteps, threads);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(*bytes, *alone);
    const auto decoded = decode_by_threads<std::int64_t, std::uint16_t>(*bytes, bases, threads);
    ASSERT_TRUE(decoded) << decoded.error().detail;
    EXPECT_TRUE(decoded->indices == one->indices && decoded->values == one->values);
    const auto refused = decode_by_threads<std::int64_t, std::uint16_t>(damaged, bases, threads);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().detail, refusal.error().detail);
  }
  tensors[2].indices.back() = 7;
  EXPECT_FALSE(encode_by_threads(changes_of(tensors, kSteps), kSteps, 3));
}

}  // namespace
}  // namespace areal::delta
