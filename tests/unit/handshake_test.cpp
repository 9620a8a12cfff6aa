// Two ends with one secret open a channel; a stranger, an old recording or a changed byte never does.
#include "engine/real/host/handshake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "engine/real/host/channel.h"

namespace areal::host {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr Identity kAnn{{1}, 3};
constexpr Identity kBob{{2}, 5};

MacKey key_of(std::string_view text) {
  return MacKey({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}
MacKey secret() { return key_of("the secret of this run"); }

HandshakeSetup client_setup() { return {.run = 9, .self = kAnn, .called = kBob, .nonce = {1, 2, 3, 4}}; }
HandshakeSetup server_setup() { return {.run = 9, .self = kBob, .nonce = {5, 6, 7, 8}}; }

// Feeds all of `bytes`; what was said back goes to `reply`. The last event.
ChannelEvent feed_all(Channel& channel, std::span<const std::uint8_t> bytes, Bytes& reply) {
  ChannelEvent event = ChannelEvent::kNeedsMore;
  while (!bytes.empty() && event != ChannelEvent::kRefused) event = channel.feed(bytes, reply);
  return event;
}

struct Ends {
  Channel client;
  Channel server;
  Bytes from_client;  // All that it said so far.
  Bytes from_server;
};

// Carries what both say until both are silent.
Ends run_handshake(const HandshakeSetup& client, const HandshakeSetup& server, const MacKey& client_secret) {
  Ends ends{Channel(client, client_secret), Channel(server, secret()), {}, {}};
  ends.client.start(ends.from_client);
  std::size_t heard_by_server = 0;
  std::size_t heard_by_client = 0;
  while (heard_by_server < ends.from_client.size() || heard_by_client < ends.from_server.size()) {
    const Bytes to_server(ends.from_client.begin() + static_cast<std::ptrdiff_t>(heard_by_server),
                          ends.from_client.end());
    heard_by_server = ends.from_client.size();
    feed_all(ends.server, to_server, ends.from_server);
    const Bytes to_client(ends.from_server.begin() + static_cast<std::ptrdiff_t>(heard_by_client),
                          ends.from_server.end());
    heard_by_client = ends.from_server.size();
    feed_all(ends.client, to_client, ends.from_client);
  }
  return ends;
}
Ends run_handshake() { return run_handshake(client_setup(), server_setup(), secret()); }

// RFC 4231, test cases 2 and 6: our use of the library gives HMAC-SHA256 and nothing else.
TEST(MacKey, GivesThePublishedValues) {
  const auto hex = [](const Mac256& mac) {
    std::string text;
    for (const std::uint8_t byte : mac) {
      text += {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
    }
    return text;
  };
  const std::string_view first = "what do ya want ";
  const std::string_view second = "for nothing?";
  const MacKey jefe = key_of("Jefe");
  const auto bytes = [](std::string_view text) {
    return std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  };
  const std::string expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
  EXPECT_EQ(hex(jefe.mac({bytes(first), bytes(second)})), expected);
  EXPECT_EQ(hex(jefe.mac({bytes(first), {}, bytes(second)})), expected);
  const std::string_view text = "Test Using Larger Than Block-Size Key - Hash Key First";
  EXPECT_EQ(hex(MacKey(Bytes(131, 0xaa)).mac({bytes(text)})),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Handshake, BothEndsOpenAndKnowEachOther) {
  Ends ends = run_handshake();
  ASSERT_TRUE(ends.client.is_open());
  ASSERT_TRUE(ends.server.is_open());
  EXPECT_EQ(ends.server.peer(), kAnn);
  EXPECT_EQ(ends.client.peer(), kBob);
  const Bytes payload{1, 2, 3};
  Bytes stream;
  Bytes reply;
  ends.client.seal(payload, stream);
  ends.client.seal({}, stream);
  std::span<const std::uint8_t> rest = stream;
  ASSERT_EQ(ends.server.feed(rest, reply), ChannelEvent::kMessage);
  EXPECT_TRUE(std::ranges::equal(ends.server.message(), payload));
  ASSERT_EQ(ends.server.feed(rest, reply), ChannelEvent::kMessage);
  EXPECT_TRUE(ends.server.message().empty());
  Bytes back;
  ends.server.seal(payload, back);
  EXPECT_EQ(feed_all(ends.client, back, reply), ChannelEvent::kMessage);
}

TEST(Handshake, AnyIncarnationMayBeCalled) {
  HandshakeSetup client = client_setup();
  client.called = Identity{kBob.node, 0};
  const Ends ends = run_handshake(client, server_setup(), secret());
  ASSERT_TRUE(ends.client.is_open());
  EXPECT_EQ(ends.client.peer(), kBob);
}

// What the server finds wrong reaches the client as the server's reason.
void expect_refused(const HandshakeSetup& client, const MacKey& client_secret, Refusal reason) {
  const Ends ends = run_handshake(client, server_setup(), client_secret);
  EXPECT_FALSE(ends.client.is_open());
  EXPECT_FALSE(ends.server.is_open());
  EXPECT_EQ(ends.server.refusal(), reason) << to_text(reason);
  EXPECT_EQ(ends.client.refusal(), Refusal::kRefusedByPeer);
  EXPECT_EQ(ends.client.peer_reason(), reason);
}

TEST(Handshake, OtherSettingsAreRefusedWithAReason) {
  HandshakeSetup client = client_setup();
  client.version = 2;
  expect_refused(client, secret(), Refusal::kWrongVersion);
  client = client_setup();
  client.run = 10;
  expect_refused(client, secret(), Refusal::kWrongRun);
  client = client_setup();
  client.called = Identity{{7}, 5};
  expect_refused(client, secret(), Refusal::kWrongPeer);
  client.called = Identity{kBob.node, 4};
  expect_refused(client, secret(), Refusal::kWrongPeer);
  client = client_setup();
  client.self = kBob;
  expect_refused(client, secret(), Refusal::kWrongPeer);
}

TEST(Handshake, WrongSecretIsSeenByTheClientFirst) {
  const Ends ends = run_handshake(client_setup(), server_setup(), key_of("the secret of some other run"));
  EXPECT_EQ(ends.client.refusal(), Refusal::kWrongSecret);
  EXPECT_EQ(ends.server.refusal(), Refusal::kRefusedByPeer);
  EXPECT_FALSE(ends.server.is_open());
}

// A server of another run, or one that took over the port, gets no message either.
TEST(Handshake, ServerThatCannotProveItselfIsRefused) {
  const Ends real = run_handshake();
  HandshakeSetup other = client_setup();
  other.nonce = {9, 9, 9, 9};
  Channel client(other, secret());
  Bytes said;
  client.start(said);
  EXPECT_EQ(feed_all(client, real.from_server, said), ChannelEvent::kRefused);
  EXPECT_EQ(client.refusal(), Refusal::kWrongSecret);
}

TEST(Handshake, ReplayedConnectionIsRefused) {
  Ends real = run_handshake();
  real.client.seal(Bytes{1, 2, 3}, real.from_client);
  HandshakeSetup later = server_setup();
  later.nonce = {8, 8, 8, 8};
  Channel server(later, secret());
  Bytes reply;
  EXPECT_EQ(feed_all(server, real.from_client, reply), ChannelEvent::kRefused);
  EXPECT_EQ(server.refusal(), Refusal::kWrongSecret);
  EXPECT_FALSE(server.is_open());
}

TEST(Handshake, ServersProofHandedBackIsNoClientsProof) {
  Channel server(server_setup(), secret());
  Channel client(client_setup(), secret());
  Bytes hello;
  client.start(hello);
  Bytes answer;
  feed_all(server, hello, answer);
  FrameReader reader;
  std::span<const std::uint8_t> rest = answer;
  const auto frame = reader.next(rest);
  ASSERT_TRUE(frame.has_value());
  Bytes reflected;
  append_frame({FrameKind::kClientProof, 1, frame->payload.last(32)}, reflected);
  EXPECT_EQ(feed_all(server, reflected, answer), ChannelEvent::kRefused);
  EXPECT_EQ(server.refusal(), Refusal::kWrongSecret);
}

TEST(Handshake, MessagesBeforeTheProofAreRefused) {
  Channel server(server_setup(), secret());
  Bytes said;
  Channel(client_setup(), secret()).start(said);
  append_frame({FrameKind::kMessage, 1, Bytes(32)}, said);
  Bytes reply;
  EXPECT_EQ(feed_all(server, said, reply), ChannelEvent::kRefused);
  EXPECT_EQ(server.refusal(), Refusal::kBadKind);
}

TEST(Handshake, StrangerCannotMakeUsHoldMore) {
  Channel server(server_setup(), secret());
  Bytes said;
  append_frame({FrameKind::kClientHello, 0, Bytes(kMaxHandshakePayload + 1)}, said);
  Bytes reply;
  EXPECT_EQ(feed_all(server, said, reply), ChannelEvent::kRefused);
  EXPECT_EQ(server.refusal(), Refusal::kTooLong);
  EXPECT_LE(server.held_bytes(), kFrameHeaderBytes + kMaxHandshakePayload);
}

// The refusal of a server that took the handshake and gets `stream` then.
Refusal after_opening(const std::function<Bytes(Ends&)>& make) {
  Ends ends = run_handshake();
  const Bytes stream = make(ends);
  Bytes reply;
  feed_all(ends.server, stream, reply);
  return ends.server.refusal();
}

TEST(Channel, FramesOutsideTheSessionAreRefused) {
  const Bytes payload(20, 7);
  EXPECT_EQ(after_opening([&](Ends& ends) {
              Bytes stream;
              ends.client.seal(payload, stream);
              return stream;
            }),
            Refusal::kNone);
  // The sequence goes on from hello and proof, but no key made the tag.
  EXPECT_EQ(after_opening([&](Ends&) {
              Bytes stream;
              append_frame({FrameKind::kMessage, 2, payload}, stream);
              return stream;
            }),
            Refusal::kBadTag);
  EXPECT_EQ(after_opening([&](Ends&) {
              Bytes stream;
              append_frame({FrameKind::kMessage, 2, Bytes(3)}, stream);
              return stream;
            }),
            Refusal::kBadTag);
  EXPECT_EQ(after_opening([&](Ends&) {
              Bytes stream;
              append_frame({FrameKind::kRefuse, 2, encode_reason(Refusal::kWrongRun)}, stream);
              return stream;
            }),
            Refusal::kBadKind);
  EXPECT_EQ(after_opening([&](Ends& ends) {
              Bytes stream;
              ends.client.seal(payload, stream);
              const Bytes once = stream;
              stream.insert(stream.end(), once.begin(), once.end());
              return stream;
            }),
            Refusal::kOutOfOrder);
}

// The tag covers the sequence: an old frame under a new number and a right checksum is still an old frame.
TEST(Channel, RepeatedFrameWithANewNumberIsRefused) {
  Ends ends = run_handshake();
  Bytes stream;
  ends.client.seal(Bytes(20, 7), stream);
  FrameReader reader;
  Bytes whole = ends.from_client;
  whole.insert(whole.end(), stream.begin(), stream.end());
  std::optional<Frame> last;
  for (std::span<const std::uint8_t> rest = whole; !rest.empty();) last = reader.next(rest);
  ASSERT_TRUE(last.has_value());
  append_frame({FrameKind::kMessage, last->sequence + 1, last->payload}, stream);
  Bytes reply;
  std::span<const std::uint8_t> rest = stream;
  EXPECT_EQ(ends.server.feed(rest, reply), ChannelEvent::kMessage);
  EXPECT_EQ(ends.server.feed(rest, reply), ChannelEvent::kRefused);
  EXPECT_EQ(ends.server.refusal(), Refusal::kBadTag);
}

TEST(Channel, DirectionsHaveTheirOwnKeys) {
  Ends ends = run_handshake();
  Ends other = run_handshake();
  // Both said two frames before, so the number is right in the other direction as well.
  Bytes stream;
  Bytes skipped;
  other.server.seal(Bytes(20, 7), skipped);
  other.server.seal(Bytes(20, 7), stream);
  Bytes reply;
  EXPECT_EQ(feed_all(ends.server, stream, reply), ChannelEvent::kRefused);
  EXPECT_EQ(ends.server.refusal(), Refusal::kBadTag);
}

TEST(Channel, OtherFrameVersionIsToldToThePeer) {
  Channel server(server_setup(), secret());
  Bytes hello;
  Channel(client_setup(), secret()).start(hello);
  hello[4] = 2;
  Bytes reply;
  EXPECT_EQ(feed_all(server, hello, reply), ChannelEvent::kRefused);
  EXPECT_EQ(server.refusal(), Refusal::kBadVersion);
  FrameReader reader;
  std::span<const std::uint8_t> rest = reply;
  const auto answer = reader.next(rest);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->kind, FrameKind::kRefuse);
  EXPECT_EQ(decode_reason(answer->payload), Refusal::kBadVersion);
}

}  // namespace
}  // namespace areal::host
