// What a stranger or a peer can send a real process: frames, a handshake, messages.
#include <algorithm>
#include <optional>

#include "engine/base/bytes.h"
#include "engine/base/check.h"
#include "engine/port/notes.h"
#include "engine/real/host/channel.h"
#include "engine/real/host/message_codec.h"
#include "tests/fuzz/targets.h"

namespace areal::fuzz {
namespace {

using host::Channel;
using host::ChannelEvent;
using host::FrameKind;

constexpr host::Identity kAnn{{1}, 3};
constexpr host::Identity kBob{{2}, 5};

const host::MacKey& secret() {
  static const host::MacKey kSecret(Bytes(32, 0x5A));
  return kSecret;
}

host::HandshakeSetup client_setup() { return {.run = 9, .self = kAnn, .called = kBob, .nonce = {1, 2, 3, 4}}; }
host::HandshakeSetup server_setup() { return {.run = 9, .self = kBob, .nonce = {5, 6, 7, 8}}; }

// Both directions of a sound connection with one message.
struct Said {
  Bytes to_server;
  Bytes to_client;
};

Said sound_connection(Channel& client, Channel& server) {
  Said said;
  client.start(said.to_server);
  View chunk = said.to_server;
  AREAL_CHECK(server.feed(chunk, said.to_client) == ChannelEvent::kNeedsMore);
  chunk = said.to_client;
  const std::size_t hello = said.to_server.size();
  AREAL_CHECK(client.feed(chunk, said.to_server) == ChannelEvent::kOpened);
  chunk = View(said.to_server).subspan(hello);
  AREAL_CHECK(server.feed(chunk, said.to_client) == ChannelEvent::kOpened);
  return said;
}

// Frames as a script: [kind] [size, two bytes] [payload], numbered and summed as they must be.
Bytes framed(View script) {
  Bytes stream;
  std::uint64_t sequence = 0;
  while (script.size() >= 3) {
    const std::size_t wanted = script[1] | static_cast<std::size_t>(script[2]) << 8;
    const std::size_t size = std::min(wanted, script.size() - 3);
    host::append_frame({static_cast<FrameKind>(script[0]), sequence++, script.subspan(3, size)}, stream);
    script = script.subspan(3 + size);
  }
  return stream;
}

Bytes script_of(View stream) {
  Bytes script;
  host::FrameReader reader;
  while (!stream.empty()) {
    const auto frame = reader.next(stream);
    if (!frame) break;
    script.push_back(static_cast<std::uint8_t>(frame->kind));
    script.push_back(static_cast<std::uint8_t>(frame->payload.size()));
    script.push_back(static_cast<std::uint8_t>(frame->payload.size() >> 8));
    script.insert(script.end(), frame->payload.begin(), frame->payload.end());
  }
  return script;
}

// Feeds all of it; true if the channel ever opened.
bool feed_all(Channel& channel, View stream) {
  bool opened = false;
  Bytes reply;
  while (!stream.empty() && channel.refusal() == host::Refusal::kNone) {
    opened = channel.feed(stream, reply) == ChannelEvent::kOpened || opened;
    AREAL_CHECK(channel.held_bytes() <= host::kFrameHeaderBytes + host::kMaxPayloadBytes);
  }
  return opened;
}

}  // namespace

// The first byte sets the size of chunks. What is read is what those bytes say: written again, it is equal.
void fuzz_frames(View input) {
  if (input.empty()) return;
  const std::size_t step = 1 + input[0];
  View rest = input.subspan(1);
  const View all = rest;
  host::FrameReader reader;
  Bytes again;
  while (!rest.empty() && reader.refusal() == host::Refusal::kNone) {
    View chunk = rest.first(std::min(step, rest.size()));
    rest = rest.subspan(chunk.size());
    while (!chunk.empty() && reader.refusal() == host::Refusal::kNone) {
      if (const auto frame = reader.next(chunk)) host::append_frame(*frame, again);
      AREAL_CHECK(reader.held_bytes() <= host::kFrameHeaderBytes + host::kMaxPayloadBytes);
    }
  }
  AREAL_CHECK(again.size() <= all.size());
  AREAL_CHECK(std::ranges::equal(again, all.first(again.size())));
}

std::vector<Bytes> frames_seeds() {
  std::vector<Bytes> seeds;
  Channel client(client_setup(), secret());
  Channel server(server_setup(), secret());
  const Said said = sound_connection(client, server);
  for (const std::uint8_t step : {std::uint8_t{0}, std::uint8_t{40}, std::uint8_t{255}}) {
    Bytes seed{step};
    seed.insert(seed.end(), said.to_server.begin(), said.to_server.end());
    seeds.push_back(seed);
  }
  return seeds;
}

// A script of well-formed frames for a server and for a client. The nonces are known, so a sound script opens the
// channel; whoever opened it has said exactly what knowing the secret lets one say.
void fuzz_handshake(View input) {
  if (input.empty()) return;
  Channel client(client_setup(), secret());
  Channel server(server_setup(), secret());
  static const Said kSound = [] {
    Channel one(client_setup(), secret());
    Channel other(server_setup(), secret());
    return sound_connection(one, other);
  }();
  const Bytes stream = framed(input.subspan(1));
  const bool to_server = input[0] % 2 == 0;
  Channel& channel = to_server ? server : client;
  if (!to_server) {
    Bytes hello;
    client.start(hello);
  }
  const Bytes& sound = to_server ? kSound.to_server : kSound.to_client;
  if (!feed_all(channel, stream)) return;
  AREAL_CHECK(stream.size() >= sound.size());
  AREAL_CHECK(std::equal(sound.begin(), sound.end(), stream.begin()));
}

std::vector<Bytes> handshake_seeds() {
  std::vector<Bytes> seeds;
  Channel client(client_setup(), secret());
  Channel server(server_setup(), secret());
  const Said said = sound_connection(client, server);
  for (const bool to_server : {true, false}) {
    Bytes seed = script_of(to_server ? said.to_server : said.to_client);
    seed.insert(seed.begin(), to_server ? 0 : 1);
    seeds.push_back(seed);
  }
  return seeds;
}

// What is taken for a message is the one encoding of that message.
void fuzz_message(View input) {
  const auto message = host::decode_message(input);
  if (!message) return;
  AREAL_CHECK(std::ranges::equal(host::encode_message(*message), input));
  const port::MessageIn seen = host::message_input(*message);
  AREAL_CHECK(seen.body.kind != 0);
}

std::vector<Bytes> message_seeds() {
  host::WireMessage message{.from = {1}, .from_incarnation = 2, .from_slot = {3}, .seq = 4, .lamport = 5};
  message.send = {.to = {6}, .to_slot = {7}, .kind = port::MessageKind::kOneWay, .request = {}, .body = {}};
  message.send.body = to_record(port::TimerFired{TimerId{8}});
  std::vector<Bytes> seeds{host::encode_message(message)};
  message.send.kind = port::MessageKind::kReply;
  message.send.body = to_record(port::VersionPublished{1, 2, 3, port::UpdateMode::kFull, port::FullReason::kRetry, 4});
  seeds.push_back(host::encode_message(message));
  return seeds;
}

}  // namespace areal::fuzz
