// Encoded deltas: the header, the choice of encoding, entries and their refusals, and receivers that follow a sender.
#include "engine/delta/header_codec.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/delta/base_tensors.h"
#include "engine/delta/payload_codec.h"
#include "engine/delta/snapshot_encoder.h"

namespace areal::delta {
namespace {

using Words = std::vector<std::uint32_t>;

NamedTensor tensor(std::string name, std::size_t elements, std::uint32_t first = 0) {
  NamedTensor made{std::move(name), DType::kF32, Words(elements)};
  for (std::size_t i = 0; i < elements; ++i) made.bits[i] = first + static_cast<std::uint32_t>(i);
  return made;
}

bool same_tensors(std::span<const NamedTensor> a, std::span<const NamedTensor> b) {
  return std::ranges::equal(a, b, [](const NamedTensor& x, const NamedTensor& y) {
    return x.name == y.name && x.dtype == y.dtype && x.bits == y.bits;
  });
}

EncodedDelta encoded(SnapshotEncoder& encoder, const std::vector<NamedTensor>& tensors, std::int64_t version) {
  auto delta = encoder.encode(tensors, version);
  EXPECT_TRUE(delta);
  return delta ? *delta : EncodedDelta{};
}

Reconstructed follow(BaseTensors& base, const EncodedDelta& delta) {
  const auto decoded = decode_delta(delta.entries);
  EXPECT_TRUE(decoded);
  const auto applied = decoded ? base.apply(*decoded) : Result<Reconstructed>(Error{});
  EXPECT_TRUE(applied) << applied.error().detail;
  return applied ? *applied : Reconstructed{};
}

bool has_entry(const EncodedDelta& delta, std::string_view name) {
  return std::ranges::find(delta.entries, name, &PayloadEntry::name) != delta.entries.end();
}

TEST(DeltaHeader, SurvivesTheRoundTripAndRefusesOthers) {
  const DeltaHeader header{7, 5, 3, 1};
  const auto words = encode_header(header);
  static_assert(std::is_same_v<decltype(words), const std::array<std::int64_t, 6>>);
  const auto back = decode_header(words);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, header);
  const auto zeros = decode_header(std::vector<std::int64_t>(6, 0));
  ASSERT_FALSE(zeros);
  EXPECT_NE(zeros.error().detail.find("magic"), std::string::npos);
  EXPECT_FALSE(decode_header(std::span(words).first(3)));
  for (std::size_t i = 0; i < 6; ++i) {
    auto broken = words;
    broken[i] = -1;
    EXPECT_EQ(decode_header(broken).has_value(), i == 2 || i == 3) << i;  // Versions are not judged here.
  }
}

TEST(DeltaHeader, ReservedNamesAreNoParameters) {
  for (const std::string_view name : {"__awex_delta_header__", "w@delta_idx", "w@delta_val"}) {
    EXPECT_TRUE(is_reserved_name(name));
    EXPECT_FALSE(check_parameter_name(name));
    SnapshotEncoder encoder;
    EXPECT_FALSE(encoder.seed(std::vector{tensor(std::string(name), 4)}, 0));
    EXPECT_FALSE(encoder.base_version());
  }
  EXPECT_TRUE(check_parameter_name("w@delta_idx.weight"));
}

TEST(DeltaEncoding, SparsityAndThreshold) {
  EXPECT_EQ(sparsity(1000, 20), 0.98);
  EXPECT_EQ(sparsity(0, 0), 1.0);
  EXPECT_TRUE(is_sparse_smaller({1000, 2, 2}, 0.5));     // 12 bytes against 2000.
  EXPECT_FALSE(is_sparse_smaller({1000, 800, 2}, 0.5));  // 4800 bytes.
}

TEST(SnapshotEncoderTest, ChangesRebuildTheSendersTensors) {
  std::vector<NamedTensor> sender{tensor("a", 100), tensor("b", 50, 1000)};
  SnapshotEncoder encoder;
  EXPECT_FALSE(encoder.encode(sender, 1));  // Not seeded.
  ASSERT_TRUE(encoder.seed(sender, 0));
  EXPECT_EQ(encoder.snapshot_bytes(), 600U);
  BaseTensors base(sender, 0);
  for (const std::size_t i : {10U, 50U, 99U}) sender[0].bits[i] += 7;
  const EncodedDelta delta = encoded(encoder, sender, 1);
  EXPECT_EQ(delta.stats.changed, 3U);
  EXPECT_EQ(delta.stats.sparse, 1U);
  EXPECT_EQ(delta.stats.unchanged, 1U);
  EXPECT_EQ(delta.entries[0].integers, (std::vector<std::int64_t>{kHeaderMagic, 1, 1, 0, 1, 0}));
  EXPECT_EQ(delta.entries[1].integers, (std::vector<std::int64_t>{10, 50, 99}));
  EXPECT_EQ(delta.entries[1].dtype, DType::kI32);
  EXPECT_FALSE(has_entry(delta, "b"));
  EXPECT_FALSE(has_entry(delta, "b@delta_idx"));
  EXPECT_EQ(follow(base, delta), (Reconstructed{1, 0, 1}));
  EXPECT_TRUE(same_tensors(base.tensors(), sender));
  EXPECT_EQ(base.version(), 1);
}

// A copy that is not refreshed would send the first change again with every delta.
TEST(SnapshotEncoderTest, EachDeltaHasOnlyItsOwnChanges) {
  std::vector<NamedTensor> sender{tensor("a", 100)};
  SnapshotEncoder encoder;
  ASSERT_TRUE(encoder.seed(sender, 0));
  sender[0].bits[0] = 500;
  EXPECT_EQ(encoded(encoder, sender, 1).stats.changed, 1U);
  EXPECT_EQ(encoder.base_version(), 1);
  sender[0].bits[1] = 501;
  const EncodedDelta second = encoded(encoder, sender, 2);
  EXPECT_EQ(second.stats.changed, 1U);
  EXPECT_EQ(second.entries[1].integers, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(changed_bits(Words{0, 0x80000000, 0x7FC00001}, Words{0, 0, 0x7FC00001}), (std::vector<std::int64_t>{1}));
}

TEST(SnapshotEncoderTest, WholeTensorsGoDenseAndTiedNamesEachGoSparse) {
  std::vector<NamedTensor> sender{tensor("a", 100), tensor("embed", 64), tensor("head", 64)};
  SnapshotEncoder encoder;
  ASSERT_TRUE(encoder.seed(sender, 0));
  for (std::uint32_t& bits : sender[0].bits) bits += 1000;
  for (const std::size_t tied : {1U, 2U}) sender[tied].bits[5] = 77;
  const EncodedDelta delta = encoded(encoder, sender, 1);
  EXPECT_TRUE(has_entry(delta, "a"));
  EXPECT_TRUE(has_entry(delta, "embed@delta_idx"));
  EXPECT_TRUE(has_entry(delta, "head@delta_idx"));
  EXPECT_EQ(delta.stats.dense, 1U);
  EXPECT_EQ(delta.stats.sparse, 2U);
}

// Many versions, then one that is wholly new, one that is not new at all, and a full transfer in between.
TEST(SnapshotEncoderTest, ReceiversFollowOverManyVersions) {
  std::vector<NamedTensor> sender{tensor("a", 40), tensor("b", 24, 100)};
  SnapshotEncoder encoder;
  ASSERT_TRUE(encoder.seed(sender, 0));
  BaseTensors base(sender, 0);
  for (std::int64_t version = 1; version <= 4; ++version) {
    sender[0].bits[static_cast<std::size_t>(version)] += 900;
    follow(base, encoded(encoder, sender, version));
    EXPECT_TRUE(same_tensors(base.tensors(), sender)) << version;
  }
  for (std::uint32_t& bits : sender[1].bits) bits += 5000;
  EXPECT_EQ(follow(base, encoded(encoder, sender, 5)), (Reconstructed{0, 1, 1}));
  const EncodedDelta nothing = encoded(encoder, sender, 6);
  EXPECT_EQ(nothing.entries.size(), 1U);
  follow(base, nothing);
  EXPECT_TRUE(same_tensors(base.tensors(), sender));
  sender[0].bits[0] = 1;
  ASSERT_TRUE(encoder.seed(sender, 7));
  base = BaseTensors(sender, 7);
  sender[0].bits[1] = 2;
  follow(base, encoded(encoder, sender, 8));
  EXPECT_TRUE(same_tensors(base.tensors(), sender));
}

// Changes that are known from elsewhere need no copy, and give what comparing gives.
TEST(PayloadCodec, GivenChangesEqualFoundOnes) {
  std::vector<NamedTensor> sender{tensor("w", 64)};
  SnapshotEncoder encoder;
  ASSERT_TRUE(encoder.seed(sender, 0));
  std::vector<std::uint8_t> mask(64, 0);
  const std::vector<std::int32_t> indices{1, 4, 7};
  for (const std::int32_t i : indices) {
    mask[static_cast<std::size_t>(i)] = 1;
    sender[0].bits[static_cast<std::size_t>(i)] += 300;
  }
  const EncodedDelta found = encoded(encoder, sender, 1);
  const BitsView current{DType::kF32, {}, sender[0].bits};
  for (const ChangeSet& changes : {change_mask(mask), change_indices(indices)}) {
    const EncodedParameter parameter{"w", current, changes};
    const auto given = encode_delta(1, 0, std::span(&parameter, 1));
    ASSERT_TRUE(given);
    ASSERT_EQ(given->entries.size(), 3U);
    EXPECT_EQ(given->entries[1].integers, found.entries[1].integers);
    EXPECT_EQ(given->entries[2].bits, (Words{301, 304, 307}));
  }
  const std::vector<std::uint8_t> clear(64, 0);
  const std::vector<EncodedParameter> others{
      {"clear", current, change_mask(clear)}, {"unknown", current, std::nullopt}, {"empty", {}, std::nullopt}};
  const auto given = encode_delta(1, 0, others);
  ASSERT_TRUE(given);
  EXPECT_EQ(given->stats.unchanged, 1U);
  EXPECT_EQ(given->stats.dense, 1U);
  EXPECT_EQ(given->stats.skipped, 1U);
  EXPECT_TRUE(has_entry(*given, "unknown"));
}

TEST(PayloadCodec, ChangesThatDoNotFitAreRefused) {
  const NamedTensor w = tensor("w", 8);
  const std::vector<std::uint8_t> short_mask(7, 1);
  const auto refused = [&w](const ChangeSet& changes) {
    const EncodedParameter parameter{"w", {DType::kF32, {}, w.bits}, changes};
    return !encode_delta(1, 0, std::span(&parameter, 1));
  };
  EXPECT_TRUE(refused(change_mask(short_mask)));
  EXPECT_TRUE(refused(change_indices(std::vector<std::int32_t>{0, 8})));
  EXPECT_TRUE(refused(change_indices(std::vector<std::int64_t>{-1, 0})));
  EXPECT_TRUE(refused(change_indices(std::vector<std::int32_t>{3, 1, 3})));
  EXPECT_TRUE(refused({DType::kF32, {}, {}, {}}));
}

// Bits that a dtype has not, dtypes that 32-bit words cannot hold, and one name for two parameters.
TEST(PayloadCodec, ParametersThatDoNotFitAreRefused) {
  const Words words{1, 2, 0x10003, 4};
  const std::vector<std::uint16_t> halves{1, 2, 3, 4};
  const auto encodes = [](const std::vector<EncodedParameter>& parameters) {
    return encode_delta(1, 0, parameters).has_value();
  };
  EXPECT_TRUE(encodes({{"w", {DType::kF32, {}, words}, std::nullopt}, {"x", {DType::kF32, {}, words}, std::nullopt}}));
  EXPECT_TRUE(encodes({{"w", {DType::kBf16, halves, {}}, std::nullopt}}));
  EXPECT_FALSE(encodes({{"w", {DType::kBf16, {}, words}, std::nullopt}}));
  EXPECT_FALSE(encodes({{"w", {DType::kF32, halves, {}}, std::nullopt}}));
  EXPECT_FALSE(encodes({{"w", {DType::kF64, {}, words}, std::nullopt}}));
  // Twice, although one of them is sparse and the other dense, or has no entry at all.
  const Words many(64, 5);
  const std::vector<std::int32_t> one{1};
  const EncodedParameter sparse{"w", {DType::kF32, {}, many}, change_indices(one)};
  const EncodedParameter dense{"w", {DType::kF32, {}, many}, std::nullopt};
  const EncodedParameter clear{"w", {DType::kF32, {}, many}, change_indices(std::span<const std::int32_t>())};
  EXPECT_TRUE(encodes({sparse}));
  EXPECT_FALSE(encodes({sparse, dense}));
  EXPECT_FALSE(encodes({sparse, clear}));
}

EncodedDelta one_of_each() {
  std::vector<NamedTensor> sender{tensor("a", 100), tensor("b", 4), tensor("c", 4)};
  SnapshotEncoder encoder;
  EXPECT_TRUE(encoder.seed(sender, 0));
  sender[0].bits[3] = 900;
  for (std::uint32_t& bits : sender[1].bits) bits += 50;
  return encoded(encoder, sender, 1);
}

TEST(PayloadCodec, BrokenPayloadsAreRefused) {
  const std::vector<PayloadEntry> whole = one_of_each().entries;  // Header, a's indices, a's values, b.
  ASSERT_EQ(whole.size(), 4U);
  ASSERT_TRUE(decode_delta(whole));
  const auto reason = [](const std::vector<PayloadEntry>& entries) {
    const auto decoded = decode_delta(entries);
    return decoded ? std::string("accepted") : decoded.error().detail;
  };
  EXPECT_NE(reason({whole[1], whole[2], whole[3]}).find("header"), std::string::npos);
  EXPECT_NE(reason({whole[0], whole[1], whole[3]}).find("unpaired"), std::string::npos);
  EXPECT_NE(reason({whole[0], whole[2], whole[3]}).find("unpaired"), std::string::npos);
  EXPECT_NE(reason({whole[0], whole[1], whole[2]}).find("count mismatch"), std::string::npos);
  EXPECT_NE(reason({whole[0], whole[1], whole[2], whole[3], whole[3]}).find("twice"), std::string::npos);
  for (const std::size_t count : {4U, 5U}) {
    std::vector<PayloadEntry> miscounted = whole;
    ++miscounted[0].integers[count];
    EXPECT_NE(reason(miscounted).find("count mismatch"), std::string::npos);
  }
  std::vector<PayloadEntry> uneven = whole;
  uneven[1].integers.push_back(4);
  EXPECT_NE(reason(uneven), "accepted");
  uneven = whole;
  uneven[1].integers[0] = std::int64_t{1} << 31;
  EXPECT_NE(reason(uneven), "accepted");
  EXPECT_EQ(reason({whole[3], whole[2], whole[1], whole[0]}), "accepted");  // Entries are found by name.
}

// What no sender writes, and a receiver would otherwise take for something else.
TEST(PayloadCodec, EntriesOfOtherKindsAreRefused) {
  const std::vector<PayloadEntry> whole = one_of_each().entries;  // Header, a's indices, a's values, b.
  const auto refused = [&whole](std::size_t place, const auto& change) {
    std::vector<PayloadEntry> changed = whole;
    change(changed[place]);
    return !decode_delta(changed);
  };
  EXPECT_TRUE(refused(0, [](PayloadEntry& header) { header.dtype = DType::kBf16; }));
  EXPECT_TRUE(refused(0, [](PayloadEntry& header) { header.bits = {1}; }));
  EXPECT_TRUE(refused(1, [](PayloadEntry& indices) { indices.dtype = DType::kI64; }));
  EXPECT_TRUE(refused(1, [](PayloadEntry& indices) { indices.bits = {1}; }));
  for (const std::size_t place : {2U, 3U}) {
    EXPECT_TRUE(refused(place, [](PayloadEntry& values) { values.integers = {1}; }));
    EXPECT_TRUE(refused(place, [](PayloadEntry& values) { values.dtype = DType::kF64; }));
    EXPECT_TRUE(refused(place, [](PayloadEntry& values) {
      values.dtype = DType::kBf16;
      values.bits[0] = 0x10000;
    }));
  }
  // One tensor as indices with values and as a whole.
  EXPECT_TRUE(refused(3, [](PayloadEntry& dense) { dense.name = "a"; }));
}

TEST(BaseTensorsTest, TakesADeltaWholeOrNotAtAll) {
  const std::vector<NamedTensor> start{tensor("a", 100), tensor("b", 4), tensor("c", 4)};
  const EncodedDelta delta = one_of_each();
  const auto decoded = decode_delta(delta.entries);
  ASSERT_TRUE(decoded);
  const auto refused = [&](BaseTensors base, const std::string& why) {
    const std::vector<NamedTensor> before(base.tensors().begin(), base.tensors().end());
    const std::int64_t version = base.version();
    const auto applied = base.apply(*decoded);
    return !applied && applied.error().detail.find(why) != std::string::npos && same_tensors(base.tensors(), before) &&
           base.version() == version;
  };
  EXPECT_TRUE(refused(BaseTensors(start, 1), "base 0"));
  EXPECT_TRUE(refused(BaseTensors({start[1], start[2]}, 0), "absent from base"));
  EXPECT_TRUE(refused(BaseTensors({tensor("a", 3), start[1]}, 0), "index 3"));
  EXPECT_TRUE(refused(BaseTensors({start[0], tensor("b", 5)}, 0), "dense 'b'"));
  // The second of two sparse entries is of a tensor that no patch fits.
  DecodedDelta two{{1, 0, 2, 0}, {decoded->sparse[0], {"d", {DType::kF64, {0}, {9}}}}, {}};
  BaseTensors with_doubles({start[0], {"d", DType::kF64, {7, 7}}}, 0);
  EXPECT_FALSE(with_doubles.apply(two));
  EXPECT_EQ(with_doubles.find("a")->bits, start[0].bits);
  BaseTensors base(start, 0);
  EXPECT_EQ(*base.apply(*decoded), (Reconstructed{1, 1, 1}));
  EXPECT_EQ(base.find("a")->bits[3], 900U);
  EXPECT_NE(base.find("b")->bits.data(), decoded->dense[0].bits.data());
  BaseTensors without_b({start[0]}, 0);
  EXPECT_EQ(*without_b.apply(*decoded), (Reconstructed{1, 1, 0}));
  ASSERT_NE(without_b.find("b"), nullptr);  // A dense tensor that is seen first is adopted.
  EXPECT_EQ(without_b.find("b")->bits, decoded->dense[0].bits);
}

}  // namespace
}  // namespace areal::delta
