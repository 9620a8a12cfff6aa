// Bytes that are damaged, cut off, too long, made up, or made with intent: refused with a reason, or decoded to what
// was sent; never read or written outside (the sanitizers look on).
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/delta/wire/decoder.h"
#include "tests/codec/sample_deltas.h"
#include "tests/codec/sealing.h"

namespace areal::delta::wire {
namespace {

using tests::changes_of;
using tests::make_sample;
using tests::SampleTensor;
using tests::seal;
using tests::Spread;
using tests::Steps;
using Bytes = std::vector<std::uint8_t>;

constexpr ValueKind kSteps{Form::kSteps, 2};

struct Sent {
  std::vector<SampleTensor> tensors;
  Bytes bytes;

  explicit Sent(std::vector<SampleTensor> made, ValueKind kind = kSteps) : tensors(std::move(made)) {
    auto coded = encode(changes_of(tensors, kind), kind);
    EXPECT_TRUE(coded);
    if (coded) bytes = *coded;
  }
  [[nodiscard]] std::vector<TensorBase> bases() const {
    std::vector<TensorBase> all;
    for (const SampleTensor& tensor : tensors) all.push_back({tensor.elements, tensor.base});
    return all;
  }
  [[nodiscard]] std::string refusal(const Bytes& received, Path path = Path::kFast) const {
    const auto decoded = decode<std::int32_t, std::uint16_t>(received, bases(), path);
    return decoded ? "" : decoded.error().detail;
  }
  [[nodiscard]] bool is_sent(const DecodedChanges<std::int32_t, std::uint16_t>& decoded) const {
    std::vector<std::int32_t> indices;
    std::vector<std::uint16_t> values;
    for (const SampleTensor& tensor : tensors) {
      indices.insert(indices.end(), tensor.indices.begin(), tensor.indices.end());
      values.insert(values.end(), tensor.half.begin(), tensor.half.end());
    }
    return decoded.indices == indices && decoded.values == values;
  }
};

Sent small_one() {
  return Sent({make_sample(300, {Spread::kEven, Steps::kTail, 9}, 1),
               make_sample(40, {Spread::kFew, Steps::kAny, 1}, 2),
               make_sample(1200, {Spread::kRuns, Steps::kTail, 2}, 3)});
}

TEST(WireDamage, EveryFlippedByteIsRefused) {
  const Sent sent = small_one();
  ASSERT_LT(sent.bytes.size(), 3000U);
  for (std::size_t place = 0; place < sent.bytes.size(); ++place) {
    for (std::uint32_t flip = 1; flip < 256; ++flip) {
      Bytes received = sent.bytes;
      received[place] = static_cast<std::uint8_t>(received[place] ^ flip);
      ASSERT_NE(sent.refusal(received), "") << "byte " << place << " flipped by " << flip;
    }
  }
  EXPECT_EQ(sent.refusal(sent.bytes), "");
}

TEST(WireDamage, EveryLengthButTheRightOneIsRefused) {
  const Sent sent = small_one();
  for (std::size_t size = 0; size < sent.bytes.size(); ++size) {
    ASSERT_NE(sent.refusal({sent.bytes.begin(), sent.bytes.begin() + static_cast<std::ptrdiff_t>(size)}), "");
  }
  for (std::size_t more = 1; more < 30; ++more) {
    Bytes received = sent.bytes;
    received.resize(received.size() + more);
    ASSERT_NE(sent.refusal(received), "");
  }
}

TEST(WireDamage, TheReasonSaysWhatAndWhere) {
  const Sent sent(
      {make_sample(300, {Spread::kEven, Steps::kTail, 9}, 1), make_sample(9000, {Spread::kAll, Steps::kTail, 1}, 2)});
  Bytes received = sent.bytes;
  received[received.size() - 9] ^= 1;
  const std::string damaged = sent.refusal(received);
  EXPECT_NE(damaged.find("block 9, changes "), std::string::npos) << damaged;
  EXPECT_NE(damaged.find("tensor 1: does not fit its check"), std::string::npos) << damaged;
  received = sent.bytes;
  received.pop_back();
  EXPECT_NE(sent.refusal(received).find(" bytes are there"), std::string::npos);
  received = sent.bytes;
  received[0] ^= 1;
  EXPECT_NE(sent.refusal(received).find("begins with other bytes"), std::string::npos);
}

// The sender's base differs from the receiver's in one value that changes.
TEST(WireDamage, AnotherBaseIsRefused) {
  Sent sent = small_one();
  const auto place = static_cast<std::size_t>(sent.tensors[0].indices[3]);
  sent.tensors[0].base[place] ^= 1;
  EXPECT_NE(sent.refusal(sent.bytes).find("another base"), std::string::npos) << sent.refusal(sent.bytes);
}

TEST(WireDamage, OtherTensorsThanTheReceiversAreRefused) {
  const Sent sent = small_one();
  const auto refused = [&](const std::vector<TensorBase>& bases) {
    return !decode<std::int32_t, std::uint16_t>(sent.bytes, bases);
  };
  std::vector<TensorBase> bases = sent.bases();
  EXPECT_FALSE(refused(bases));
  bases[1].elements += 1;
  EXPECT_TRUE(refused(bases));
  bases = sent.bases();
  bases.pop_back();
  EXPECT_TRUE(refused(bases));
  bases = sent.bases();
  bases[0].values = {};
  EXPECT_TRUE(refused(bases));
  EXPECT_FALSE((decode<std::int32_t, std::uint32_t>(sent.bytes, sent.bases())));
}

// Behind the checks: whatever the codes and rows are, both paths see the same, and nothing is read or written outside.
TEST(WireDamage, FittingChecksDoNotHelp) {
  const Sent sent = small_one();
  {
    Bytes same = sent.bytes;
    seal(same);
    ASSERT_EQ(same, sent.bytes);
  }
  Rng rng(11);
  const std::uint64_t first_block = 8 * (kHeaderUnits + 2 * (load_unit(sent.bytes, 2) + load_unit(sent.bytes, 4)));
  std::uint32_t refused = 0;
  for (std::uint32_t round = 0; round < 20'000; ++round) {
    Bytes received = sent.bytes;
    const std::uint64_t flips = 1 + rng.draw_below(4);
    for (std::uint64_t i = 0; i < flips; ++i) {
      // Of the words that say the most, more often: the first units of blocks.
      std::uint64_t place = rng.draw_below(received.size());
      if (rng.draw_chance(1, 2)) place = first_block + place % 8;
      received[place] = static_cast<std::uint8_t>(rng.draw_u64());
    }
    seal(received);
    const auto fast = decode<std::int32_t, std::uint16_t>(received, sent.bases());
    const auto slow = decode<std::int32_t, std::uint16_t>(received, sent.bases(), Path::kReference);
    ASSERT_EQ(fast.has_value(), slow.has_value());
    if (!fast) {
      ASSERT_EQ(fast.error().detail, slow.error().detail);
      ++refused;
    } else {
      ASSERT_TRUE(sent.is_sent(*fast));
    }
  }
  EXPECT_GT(refused, 15'000U);
}

// A number whose 1 stands in the padding behind its part is not there, whatever it would be.
TEST(WireDamage, PaddingIsNoNumber) {
  constexpr std::uint32_t kUnary = 40;
  for (const StreamCode code : {StreamCode{Rule::kExpGolomb, 16}, StreamCode{Rule::kRice, 16}}) {
    for (std::uint32_t place = kUnary - 1; place < 64; ++place) {
      const BlockHead head{.gaps = {}, .values = code, .has_steps = true, .value_unary = kUnary};
      std::vector<std::uint64_t> units{pack_head(head), std::uint64_t{1} << place};
      units.resize(parts_of(head, 1).units());
      BlockNumbers numbers;
      numbers.changes = 1;
      bool has_steps = false;
      const char* slow = read_block(units, kSteps, Path::kReference, numbers, has_steps);
      const char* fast = read_block(units, kSteps, Path::kFast, numbers, has_steps);
      EXPECT_STREQ(fast, slow) << place;
      EXPECT_EQ(slow == nullptr, place == kUnary - 1 && code.rule == Rule::kRice) << place;
    }
  }
}

// Few numbers with many zeros ask for more low bits than all numbers together have: they are not read.
TEST(WireDamage, TooFewNumbersAreSeenBeforeTheirBits) {
  for (const std::uint32_t changes : {64U, kBlockChanges}) {
    for (std::uint32_t zeros = 20; zeros < 63; ++zeros) {
      const BlockHead head{.gaps = {}, .values = {Rule::kExpGolomb, 0}, .has_steps = true, .value_unary = changes};
      std::vector<std::uint64_t> units{pack_head(head)};
      units.resize(parts_of(head, changes).units());
      for (std::uint32_t place = zeros; place < changes; place += zeros + 1) {
        units[1 + place / 64] |= std::uint64_t{1} << (place % 64);
      }
      BlockNumbers numbers;
      numbers.changes = changes;
      bool has_steps = false;
      for (const Path path : {Path::kFast, Path::kReference}) {
        EXPECT_STREQ(read_block(units, kSteps, path, numbers, has_steps), "has fewer numbers than changes") << zeros;
      }
    }
  }
}

TEST(WireDamage, RandomBytesAreRefused) {
  const Sent sent = small_one();
  Rng rng(12);
  for (std::uint32_t round = 0; round < 20'000; ++round) {
    Bytes received(rng.draw_below(700));
    for (std::uint8_t& byte : received) byte = static_cast<std::uint8_t>(rng.draw_u64());
    if (received.size() >= 16 && rng.draw_chance(3, 4)) {
      std::copy_n(sent.bytes.begin(), 8 * (1 + rng.draw_below(2)), received.begin());
      for (std::uint64_t unit = 2; unit < std::min<std::uint64_t>(6, received.size() / 8); ++unit) {
        store_unit(received, unit, rng.draw_below(received.size() / 8));
      }
      seal(received);
    }
    ASSERT_NE(sent.refusal(received), "");
  }
}

// A message that claims what it does not have is refused before memory is asked for.
TEST(WireDamage, ClaimsAreNotBelieved) {
  const Sent sent = small_one();
  for (std::uint64_t unit = 2; unit < 6; ++unit) {
    for (const std::uint64_t claim : {~0ULL, 1ULL << 63, 1ULL << 40, 0x2000000000000000ULL}) {
      Bytes received = sent.bytes;
      store_unit(received, unit, claim);
      seal(received);
      ASSERT_NE(sent.refusal(received), "");
    }
  }
  // Changes of tensors whose sum runs over.
  Bytes received = sent.bytes;
  for (std::uint64_t tensor = 0; tensor < 3; ++tensor) store_unit(received, kHeaderUnits + 2 * tensor + 1, 1ULL << 63);
  seal(received);
  EXPECT_NE(sent.refusal(received), "");
}

TEST(WireDamage, SendersMistakesAreRefused) {
  const std::vector<std::int64_t> indices{3, 7, 9};
  const std::vector<std::uint16_t> values{1, 2, 3};
  const std::vector<std::uint16_t> base(10);
  const auto refused = [&](TensorChanges changes, ValueKind kind) { return !encode(std::span(&changes, 1), kind); };
  const TensorChanges good{.elements = 10, .wide = indices, .half = values};
  EXPECT_FALSE(refused(good, {}));
  TensorChanges bad = good;
  bad.elements = 9;
  EXPECT_TRUE(refused(bad, {}));
  bad.elements = 2;
  EXPECT_TRUE(refused(bad, {}));
  bad = good;
  bad.half = bad.half.first(2);
  EXPECT_TRUE(refused(bad, {}));
  bad = good;
  bad.base = base;
  EXPECT_TRUE(refused(bad, {}));
  EXPECT_FALSE(refused(bad, kSteps));
  EXPECT_TRUE(refused(good, kSteps));
  EXPECT_TRUE(refused(good, {Form::kPlain, 4}));
  EXPECT_TRUE(refused(good, {Form::kPlain, 3}));
  for (const std::vector<std::int64_t>& wrong :
       {std::vector<std::int64_t>{3, 3, 9}, {7, 3, 9}, {-1, 3, 9}, {3, 7, 10}, {-5, -4, -3}}) {
    bad = good;
    bad.wide = wrong;
    EXPECT_TRUE(refused(bad, {}));
  }
  // Across the border of two blocks.
  std::vector<std::int32_t> many(kBlockChanges + 1);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int32_t>(i + 1);
  const std::vector<std::uint16_t> zeros(many.size());
  EXPECT_FALSE(refused({.elements = 5000, .narrow = many, .half = zeros}, {}));
  many.back() = 1024;
  EXPECT_TRUE(refused({.elements = 5000, .narrow = many, .half = zeros}, {}));
}

}  // namespace
}  // namespace areal::delta::wire
