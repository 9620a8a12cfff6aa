// Whoever is not of the run gets nothing in, takes nothing from others, and is counted by reason.
#include <algorithm>

#include "engine/base/rng.h"
#include "tests/unit/links_fixture.h"

namespace areal::host {
namespace {

constexpr Identity kAnn{{1}, 1};
constexpr Identity kBob{{2}, 1};
constexpr Identity kEve{{9}, 1};

class LinksStranger : public LinksTest {
 protected:
  // Says `bytes` to `station` and waits until it was refused for `reason`.
  void expect_refused(const Station& station, std::span<const std::uint8_t> bytes, Refusal reason) {
    const std::uint64_t before = station.links->counts().of(reason);
    const RawSocket stranger = RawSocket::connect(station.links->port());
    stranger.say(bytes);
    EXPECT_TRUE(run_until([&] { return station.links->counts().of(reason) == before + 1; })) << to_text(reason);
    EXPECT_TRUE(run_until([&] { return hears_the_end(stranger); }));
  }
  // Whether the peer closed, after the last word that it may have had.
  static bool hears_the_end(const RawSocket& socket) {
    while (!socket.hear().empty()) {
    }
    return socket.is_closed_by_peer();
  }
  Bytes hello(const HandshakeSetup& setup) {
    Bytes said;
    Channel(setup, MacKey(secret_bytes())).start(said);
    return said;
  }
};

TEST_F(LinksStranger, GarbageIsRefusedAtOnce) {
  const auto ann = make_station(kAnn);
  expect_refused(*ann, text("GET / HTTP/1.1\r\n\r\n"), Refusal::kBadMagic);
  Bytes long_hello;
  append_frame({FrameKind::kClientHello, 0, Bytes(kMaxPayloadBytes)}, long_hello);
  expect_refused(*ann, long_hello, Refusal::kTooLong);
  Bytes message;
  append_frame({FrameKind::kMessage, 0, text("take this")}, message);
  expect_refused(*ann, message, Refusal::kBadKind);
  EXPECT_TRUE(ann->received.empty());
  ASSERT_FALSE(ann->reports.empty());
  EXPECT_TRUE(ann->reports[0].remote.starts_with("127.0.0.1:")) << ann->reports[0].remote;
}

TEST_F(LinksStranger, OtherVersionRunAndNodeAreRefusedWithAReason) {
  const auto ann = make_station(kAnn);
  HandshakeSetup setup{.run = kRun, .self = kEve, .called = kAnn};
  setup.version = 2;
  expect_refused(*ann, hello(setup), Refusal::kWrongVersion);
  setup = {.run = kRun + 1, .self = kEve, .called = kAnn};
  expect_refused(*ann, hello(setup), Refusal::kWrongRun);
  setup = {.run = kRun, .self = kEve, .called = kBob};
  expect_refused(*ann, hello(setup), Refusal::kWrongPeer);
  Bytes other_format = hello({.run = kRun, .self = kEve, .called = kAnn});
  other_format[4] = 9;
  expect_refused(*ann, other_format, Refusal::kBadVersion);
}

TEST_F(LinksStranger, ProcessWithAnotherSecretOrRunLearnsWhy) {
  const auto ann = make_station(kAnn);
  const auto eve = make_station(options_of(kEve), 0x77);
  eve->links->send(kAnn.node, text("from eve"));
  ASSERT_TRUE(run_until([&] { return ann->links->counts().of(Refusal::kRefusedByPeer) > 0; }));
  EXPECT_GT(eve->links->counts().of(Refusal::kWrongSecret), 0U);
  LinksOptions options = options_of(kBob);
  options.run = kRun + 1;
  const auto bob = make_station(options);
  bob->links->send(kAnn.node, text("from another run"));
  ASSERT_TRUE(run_until([&] {
    return std::ranges::any_of(bob->reports, [](const LinkReport& report) {
      return report.reason == Refusal::kRefusedByPeer && report.peer_reason == Refusal::kWrongRun;
    });
  }));
  EXPECT_TRUE(ann->received.empty());
  EXPECT_EQ(ann->links->counts().opened, 0U);
}

TEST_F(LinksStranger, ReplayedConnectionIsRefused) {
  const auto ann = make_station(kAnn);
  Member real = call(*ann, kBob, kAnn, 1);
  Bytes sealed;
  real.channel.seal(text("pay"), sealed);
  real.socket.say(sealed);
  real.said.insert(real.said.end(), sealed.begin(), sealed.end());
  ASSERT_TRUE(run_until([&] { return ann->received.size() == 1; }));
  for (int i = 0; i < 5; ++i) expect_refused(*ann, real.said, Refusal::kWrongSecret);
  EXPECT_EQ(ann->received.size(), 1U);
  EXPECT_EQ(ann->links->counts().opened, 1U);
  EXPECT_FALSE(real.socket.is_closed_by_peer());
}

TEST_F(LinksStranger, EarlierIncarnationIsRefused) {
  const auto ann = make_station(kAnn);
  Member later = call(*ann, Identity{kBob.node, 3}, kAnn, 1);
  ASSERT_TRUE(run_until([&] { return ann->links->counts().opened == 1; }));
  const Member earlier = call(*ann, Identity{kBob.node, 2}, kAnn, 2);
  ASSERT_TRUE(run_until([&] { return ann->links->counts().of(Refusal::kStaleIncarnation) == 1; }));
  EXPECT_FALSE(later.socket.is_closed_by_peer());
}

TEST_F(LinksStranger, SilentOnesAreClosedAfterTheDeadline) {
  LinksOptions options = options_of(kAnn);
  options.handshake_deadline = 40_ms;
  const auto ann = make_station(options);
  const RawSocket silent = RawSocket::connect(ann->links->port());
  const RawSocket half = RawSocket::connect(ann->links->port());
  const Bytes whole = hello({.run = kRun, .self = kEve, .called = kAnn});
  half.say(std::span(whole).first(50));
  const RawSocket unproved = RawSocket::connect(ann->links->port());
  unproved.say(whole);
  const Instant before = loop_->now();
  ASSERT_TRUE(run_until([&] { return ann->links->counts().of(Refusal::kHandshakeTimeout) == 3; }));
  EXPECT_GE((loop_->now() - before).ns, Duration{39_ms}.ns);
  EXPECT_EQ(ann->links->strangers(), 0U);
  EXPECT_TRUE(silent.is_closed_by_peer());
  EXPECT_TRUE(half.is_closed_by_peer());
}

TEST_F(LinksStranger, ManySilentOnesDoNotKeepMembersOut) {
  LinksOptions options = options_of(kAnn);
  options.strangers = 4;
  const auto ann = make_station(options);
  const auto bob = make_station(kBob);
  std::vector<RawSocket> crowd;
  for (int i = 0; i < 50; ++i) crowd.push_back(RawSocket::connect(ann->links->port()));
  bob->links->send(kAnn.node, text("through the crowd"));
  ASSERT_TRUE(run_until([&] { return !ann->received.empty(); }));
  EXPECT_LE(ann->links->strangers(), 4U);
  EXPECT_GE(ann->links->counts().of(Refusal::kTooManyStrangers), 46U);
}

TEST_F(LinksStranger, AFloodIsCountedButNotReportedWithoutEnd) {
  LinksOptions options = options_of(kAnn);
  options.reports_per_second = 5;
  const auto ann = make_station(options);
  for (int i = 0; i < 100; ++i) expect_refused(*ann, text("x"), Refusal::kBadMagic);
  EXPECT_EQ(ann->links->counts().of(Refusal::kBadMagic), 100U);
  EXPECT_LT(ann->reports.size(), 100U);
}

TEST_F(LinksStranger, MemberWhoseFramesAreChangedIsRefused) {
  const auto ann = make_station(kAnn);
  for (std::uint64_t round = 0; round < 300; ++round) {
    Rng rng(round);
    Member member = call(*ann, kBob, kAnn, round);
    Bytes sealed;
    member.channel.seal(text("a message as long as this"), sealed);
    const std::size_t at = rng.draw_below(sealed.size());
    sealed[at] ^= static_cast<std::uint8_t>(1U << rng.draw_below(8));
    // A changed length may let it wait for more; more makes it fail.
    sealed.resize(sealed.size() + kMaxPayloadBytes);
    member.socket.say(sealed);
    ASSERT_TRUE(run_until([&] { return hears_the_end(member.socket); })) << round;
  }
  EXPECT_TRUE(ann->received.empty());
  EXPECT_EQ(ann->links->counts().opened, 300U);
}

// A real connection's bytes, changed, two thousand times, beside a member who goes on talking.
TEST_F(LinksStranger, ChangedRecordingsDisturbNobody) {
  constexpr std::uint64_t kRounds = 2000;
  const auto ann = make_station(kAnn);
  const auto bob = make_station(kBob);
  Bytes recording;
  {
    Member eve = call(*ann, kEve, kAnn, 1);
    eve.channel.seal(text("from eve"), eve.said);
    recording = eve.said;
  }
  ASSERT_TRUE(run_until([&] { return ann->links->counts().opened == 1; }));
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    Rng rng(round);
    Bytes stream = recording;
    for (std::uint64_t left = rng.draw_below(4); left > 0; --left) {
      const std::size_t at = rng.draw_below(stream.size());
      stream[at] = static_cast<std::uint8_t>(rng.draw_u64());
    }
    const std::size_t kept = rng.draw_below(stream.size());
    if (rng.draw_chance(1, 4)) stream.resize(kept);
    {
      const RawSocket stranger = RawSocket::connect(ann->links->port());
      stranger.say(stream);
    }
    bob->links->send(kAnn.node, text(std::to_string(round)));
    if (round % 16 == 15) {
      ASSERT_TRUE(run_until([&] { return ann->received.size() == round + 1; })) << round;
    }
  }
  ASSERT_TRUE(run_until([&] { return ann->received.size() == kRounds && ann->links->strangers() == 0; }));
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    ASSERT_EQ(ann->received[round], (Received{kBob, text(std::to_string(round))}));
  }
  EXPECT_EQ(ann->links->counts().opened, 2U);  // Eve's own, and Bob's one and only.
  std::uint64_t refused = 0;
  for (const std::uint64_t count : ann->links->counts().refused) refused += count;
  EXPECT_GE(refused, kRounds);
}

}  // namespace
}  // namespace areal::host
