// A hundred thousand changed connections: nothing is taken beyond what was left as it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "engine/base/bytes.h"
#include "engine/base/rng.h"
#include "engine/real/host/channel.h"

namespace areal::host {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr Identity kAnn{{1}, 3};
constexpr Identity kBob{{2}, 5};
constexpr std::size_t kMessages = 4;
constexpr int kRounds = 100'000;

struct RawFrame {
  FrameKind kind = FrameKind::kMessage;
  std::uint64_t sequence = 0;
  Bytes payload;
};

std::vector<RawFrame> cut(std::span<const std::uint8_t> stream) {
  std::vector<RawFrame> frames;
  FrameReader reader;
  while (!stream.empty()) {
    const auto frame = reader.next(stream);
    if (frame) frames.push_back({frame->kind, frame->sequence, {frame->payload.begin(), frame->payload.end()}});
  }
  return frames;
}

Bytes join(const std::vector<RawFrame>& frames) {
  Bytes stream;
  for (const RawFrame& frame : frames) append_frame({frame.kind, frame.sequence, frame.payload}, stream);
  return stream;
}

// One real connection, as both ends said it.
struct Recording {
  HandshakeSetup client;
  HandshakeSetup server;
  Bytes to_server{};
  Bytes to_client{};
  std::vector<Bytes> messages{};
};

Recording record_connection(const MacKey& secret, std::uint64_t seed) {
  Recording made{.client = {.run = 9, .self = kAnn, .called = kBob, .nonce = {seed, 2, 3, 4}},
                 .server = {.run = 9, .self = kBob, .nonce = {5, seed, 7, 8}}};
  Channel client(made.client, secret);
  Channel server(made.server, secret);
  client.start(made.to_server);
  std::span<const std::uint8_t> chunk = made.to_server;
  EXPECT_EQ(server.feed(chunk, made.to_client), ChannelEvent::kNeedsMore);
  chunk = made.to_client;
  EXPECT_EQ(client.feed(chunk, made.to_server), ChannelEvent::kOpened);
  for (std::size_t i = 0; i < kMessages; ++i) {
    made.messages.push_back(Bytes(8 * i, static_cast<std::uint8_t>(seed + i)));
    client.seal(made.messages.back(), made.to_server);
  }
  return made;
}

// Changes frames and makes their checksums right again, as one who knows the format would.
Bytes forge(std::vector<RawFrame> frames, const std::vector<RawFrame>& others, Rng& rng) {
  const std::size_t at = rng.draw_below(frames.size());
  RawFrame& frame = frames[at];
  switch (rng.draw_below(7)) {
    case 0:
      if (!frame.payload.empty()) {
        const std::size_t byte = rng.draw_below(frame.payload.size());
        frame.payload[byte] ^= static_cast<std::uint8_t>(1U << rng.draw_below(8));
      }
      break;
    case 1:
      frame.payload.resize(rng.draw_below(frame.payload.size() + 40));
      break;
    case 2:
      frame.kind = static_cast<FrameKind>(rng.draw_below(5));
      break;
    case 3:
      frame = others[rng.draw_below(others.size())];
      break;
    case 4: {
      const RawFrame copy = frame;
      frames.insert(frames.begin() + static_cast<std::ptrdiff_t>(at), copy);
      break;
    }
    case 5:
      frames.erase(frames.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    default:
      std::swap(frame, frames[rng.draw_below(frames.size())]);
      break;
  }
  // With numbers that go on as they should, or with the old ones.
  if (rng.draw_chance(3, 4)) {
    for (std::size_t i = 0; i < frames.size(); ++i) frames[i].sequence = i;
  }
  return join(frames);
}

// Changes bytes without a thought for the format.
Bytes damage(Bytes stream, Rng& rng) {
  for (std::uint64_t left = 1 + rng.draw_below(4); left > 0; --left) {
    const std::size_t at = rng.draw_below(stream.size());
    switch (rng.draw_below(4)) {
      case 0:
        stream[at] ^= static_cast<std::uint8_t>(1U << rng.draw_below(8));
        break;
      case 1:
        stream[at] = static_cast<std::uint8_t>(rng.draw_u64());
        break;
      case 2:
        stream.resize(at + 1);
        break;
      default:
        stream.insert(stream.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::uint8_t>(rng.draw_u64()));
        break;
    }
  }
  return stream;
}

// How many bytes of `stream` up to the end of its n-th frame.
std::vector<std::size_t> frame_ends(const Bytes& stream) {
  std::vector<std::size_t> ends;
  FrameReader reader;
  for (std::span<const std::uint8_t> rest = stream; !rest.empty();) {
    if (reader.next(rest)) ends.push_back(stream.size() - rest.size());
  }
  return ends;
}

// Feeds `stream` in chunks and returns the messages that were taken.
std::vector<Bytes> taken_from(Channel& channel, std::span<const std::uint8_t> stream, Rng& rng) {
  std::vector<Bytes> taken;
  Bytes reply;
  while (!stream.empty() && channel.refusal() == Refusal::kNone) {
    const std::size_t size = std::min<std::size_t>(stream.size(), 1 + rng.draw_below(300));
    std::span<const std::uint8_t> chunk = stream.first(size);
    stream = stream.subspan(size);
    while (!chunk.empty() && channel.refusal() == Refusal::kNone) {
      if (channel.feed(chunk, reply) == ChannelEvent::kMessage) {
        taken.emplace_back(channel.message().begin(), channel.message().end());
      }
    }
  }
  EXPECT_LE(channel.held_bytes(), kFrameHeaderBytes + kMaxPayloadBytes);
  return taken;
}

class ChannelMutation : public ::testing::Test {
 protected:
  const MacKey secret_{Bytes(32, 0x5A)};
  const Recording real_ = record_connection(secret_, 1);
  const Recording other_ = record_connection(secret_, 2);
  const std::vector<RawFrame> frames_ = cut(real_.to_server);
  const std::vector<RawFrame> other_frames_ = cut(other_.to_server);
  const std::vector<std::size_t> ends_ = frame_ends(real_.to_server);
};

TEST_F(ChannelMutation, UnchangedConnectionIsTakenWhole) {
  Rng rng(1);
  Channel server(real_.server, secret_);
  EXPECT_EQ(taken_from(server, real_.to_server, rng), real_.messages);
  ASSERT_EQ(frames_.size(), kMessages + 2);
  EXPECT_EQ(join(frames_), real_.to_server);
}

// The server has the nonce of the recording, which no real attacker gets: only keys and proofs stand in the way.
TEST_F(ChannelMutation, NothingIsTakenBeyondWhatWasLeftAlone) {
  int unlike = 0;
  std::size_t messages = 0;
  for (int round = 0; round < kRounds; ++round) {
    Rng rng(static_cast<std::uint64_t>(round));
    const Bytes stream = rng.draw_chance(1, 2) ? forge(frames_, other_frames_, rng) : damage(real_.to_server, rng);
    const auto common = std::ranges::mismatch(stream, real_.to_server).in1 - stream.begin();
    const auto whole = static_cast<std::size_t>(
        std::ranges::count_if(ends_, [&](std::size_t end) { return end <= static_cast<std::size_t>(common); }));
    Channel server(real_.server, secret_);
    const std::vector<Bytes> taken = taken_from(server, stream, rng);
    ASSERT_EQ(taken.size(), whole > 2 ? whole - 2 : 0) << round;
    ASSERT_TRUE(std::ranges::equal(taken, std::span(real_.messages).first(taken.size()))) << round;
    ASSERT_EQ(server.peer() == kAnn || whole < 2, true) << round;
    ASSERT_TRUE(whole >= 2 || !server.is_open()) << round;
    unlike += stream == real_.to_server ? 0 : 1;
    messages += taken.size();
  }
  EXPECT_GT(unlike, kRounds * 9 / 10);
  EXPECT_GT(messages, 0U);
}

TEST_F(ChannelMutation, ChangedServerNeverOpensAClient) {
  const std::vector<RawFrame> frames = cut(real_.to_client);
  const std::vector<RawFrame> others = cut(other_.to_client);
  for (int round = 0; round < kRounds / 5; ++round) {
    Rng rng(static_cast<std::uint64_t>(round));
    const Bytes stream = rng.draw_chance(1, 2) ? forge(frames, others, rng) : damage(real_.to_client, rng);
    const bool is_same = stream.size() >= real_.to_client.size() &&
                         std::equal(real_.to_client.begin(), real_.to_client.end(), stream.begin());
    Channel client(real_.client, secret_);
    Bytes said;
    client.start(said);
    Bytes reply;
    std::span<const std::uint8_t> chunk = stream;
    const ChannelEvent event = chunk.empty() ? ChannelEvent::kNeedsMore : client.feed(chunk, reply);
    ASSERT_EQ(event == ChannelEvent::kOpened, is_same) << round;
  }
}

}  // namespace
}  // namespace areal::host
