// Numbers that must be the same on every compiler, machine and day: seeds that people noted down depend on them.
//
// Random numbers come from the published generators (xoshiro256** after splitmix64) computed elsewhere; digests of the
// empty text and of "abc" are XXH3-128's published ones.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/rng.h"
#include "engine/port/notes.h"
#include "engine/port/trace_digest.h"
#include "sim/kernel/decision.h"

namespace areal::test {
namespace {

std::vector<std::uint64_t> draws(Rng rng, int count) {
  std::vector<std::uint64_t> drawn;
  for (int i = 0; i < count; ++i) drawn.push_back(rng.draw_u64());
  return drawn;
}

TEST(Golden, RandomWords) {
  EXPECT_EQ(draws(Rng(0), 3), (std::vector<std::uint64_t>{0x99EC5F36CB75F2B4, 0xBF6E1F784956452A, 0x1A5F849D4933E6E0}));
  EXPECT_EQ(draws(Rng(2026), 3),
            (std::vector<std::uint64_t>{0x92E011592E98AE15, 0x489F37946D6D18D8, 0xD0009E279D9CDEDA}));
}

TEST(Golden, RandomNumbersBelowABound) {
  Rng rng(7);
  std::vector<std::uint64_t> drawn;
  for (int i = 0; i < 6; ++i) drawn.push_back(rng.draw_below(1'000));
  EXPECT_EQ(drawn, (std::vector<std::uint64_t>{994, 674, 638, 664, 664, 721}));
}

TEST(Golden, ForkedStreams) {
  const Rng fork = Rng(7).fork("net.delay");
  EXPECT_EQ(fork.seed(), 0xF18CF81C285AD600U);
  EXPECT_EQ(draws(fork, 1), std::vector<std::uint64_t>{0x7FB12AFE6146A714});
}

TEST(Golden, MixedWords) {
  EXPECT_EQ(mix_words(0, 0), 0x0397AB29740681D9U);
  EXPECT_EQ(mix_words(1, 2), 0x57E7B069FFF1380AU);
  EXPECT_EQ(mix_words(2, 1), 0x6871C08CBE75136CU);
}

TEST(Golden, Choices) {
  port::TraceDigest sink;
  const auto chosen = [&](std::uint64_t seed, const sim::StreamKey& key, const std::vector<std::uint64_t>& bounds) {
    sim::Decisions decisions(seed);
    std::vector<std::uint64_t> choices;
    for (const std::uint64_t bound : bounds) choices.push_back(decisions.draw_below(key, bound, sink));
    return choices;
  };
  using Choices = std::vector<std::uint64_t>;
  EXPECT_EQ(chosen(42, {"net.delay", {3}, {7}}, {1'000, 1'000, 1'000, 1'000}), (Choices{776, 203, 70, 667}));
  EXPECT_EQ(chosen(42, {"net.delay", {7}, {3}}, {1'000, 1'000, 1'000, 1'000}), (Choices{322, 896, 687, 734}));
  EXPECT_EQ(chosen(1, {"fault.0.kill.on", {}, {}}, {2, 3, 4, 1'000'000}), (Choices{1, 2, 2, 183'333}));
}

TEST(Golden, Digests) {
  const std::vector<std::uint64_t> words{1, 2, 3};
  EXPECT_EQ(to_hex(hash_bytes({})), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(to_hex(hash_text("abc")), "06b05ab6733a618578af5f94892f3950");
  EXPECT_EQ(to_hex(hash_text("areal-sim", 1)), "dd50867f0068eab5f36819e4871ddf21");
  EXPECT_EQ(to_hex(hash_words(words)), "d0d66ae2837a0117026f21f9c50dcf1f");
  EXPECT_EQ(to_hex(hash_words(words, 9)), "5c26b9298a75e97495df778d924054c4");
  EXPECT_EQ(to_hex(chain_digest({1, 2}, {3, 4})), "93e085440feb4ed733491ce3a4ecfabd");
}

// Words are hashed with their lowest byte first, whatever the machine.
TEST(Golden, WordsAreHashedInLittleEndianOrder) {
  const std::array<std::uint64_t, 1> word{0x0807060504030201};
  const std::array<std::uint8_t, 8> bytes{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(hash_words(word), hash_bytes(bytes));
}

TEST(Golden, SumsOfDigestsCarry) {
  DigestSum sum;
  sum.add({1, UINT64_MAX});
  sum.add({2, 3});
  EXPECT_EQ(sum.total, (Digest128{4, 2}));
  sum.remove({1, UINT64_MAX});
  EXPECT_EQ(sum.total, (Digest128{2, 3}));
}

// What a run's digest is made of: a change here makes every recording that was kept another run's.
TEST(Golden, TraceLines) {
  port::TraceDigest digest;
  digest.on_stream(0, "net.delay.3-7");
  digest.on_decision({0, 0, 1'000, 776});
  port::TraceEvent event;
  event.seq = 1;
  event.lamport = 1;
  event.at = Instant{250};
  event.node = NodeId{3};
  event.incarnation = 1;
  event.what = port::TraceWhat::kEffect;
  event.record = to_record(port::Note{});
  event.body = to_record(port::VersionPublished{1, 2, 3, port::UpdateMode::kFull, port::FullReason::kNotSeeded, 4'096});
  digest.on_event(event);
  EXPECT_EQ(to_hex(digest.digest()), "ca86c6dab5c8f957680a991966ba5882");
  digest.on_state(NodeId{3}, SlotId{0}, {5, 6});
  EXPECT_EQ(to_hex(digest.digest()), "e6a8357b5489015031431ff9d7600f3a");
}

}  // namespace
}  // namespace areal::test
