#include "engine/real/host/handshake.h"

#include <utility>

#include "engine/base/check.h"
#include "engine/real/host/wire_fields.h"

namespace areal::host {
namespace {

// Each ends in a zero byte, and none holds another, so no two inputs of the MAC are equal.
constexpr std::string_view kServerProof("areal server proof\0", 19);
constexpr std::string_view kClientProof("areal client proof\0", 19);
constexpr std::string_view kKeyToServer("areal key to server\0", 20);
constexpr std::string_view kKeyToClient("areal key to client\0", 20);

struct ClientHello {
  std::uint64_t version = 0;
  std::uint64_t run = 0;
  Identity from{};
  Identity called{};
  Nonce nonce{};
  AREAL_FIELDS(version, run, from, called, nonce)
};

struct ServerHello {
  std::uint64_t version = 0;
  std::uint64_t run = 0;
  Identity from{};
  Nonce nonce{};
  AREAL_FIELDS(version, run, from, nonce)
};

struct Reason {
  Refusal reason = Refusal::kNone;
  AREAL_FIELDS(reason)
};

}  // namespace

std::vector<std::uint8_t> encode_reason(Refusal reason) { return encode_fields(Reason{reason}); }

Refusal decode_reason(std::span<const std::uint8_t> payload) {
  const auto reason = decode_fields<Reason>(payload);
  if (!reason || static_cast<std::size_t>(reason->reason) >= kRefusals) return Refusal::kNone;
  return reason->reason;
}

Handshake::Handshake(const HandshakeSetup& setup, MacKey secret)
    : setup_(setup), secret_(std::move(secret)), peer_(setup.called.value_or(Identity{})) {}

Mac256 Handshake::mac(std::string_view direction) const {
  const std::span label(reinterpret_cast<const std::uint8_t*>(direction.data()), direction.size());
  return secret_.mac({label, client_hello_, server_hello_});
}

std::optional<Handshake::Reply> Handshake::refuse(Refusal reason) {
  state_ = State::kRefused;
  refusal_ = reason;
  return Reply{FrameKind::kRefuse, encode_reason(reason)};
}

std::optional<Handshake::Reply> Handshake::start() {
  AREAL_CHECK(state_ == State::kStart);
  if (!is_client()) return std::nullopt;
  client_hello_ = encode_fields(ClientHello{
      .version = setup_.version, .run = setup_.run, .from = setup_.self, .called = peer_, .nonce = setup_.nonce});
  state_ = State::kAwaitServerHello;
  return Reply{FrameKind::kClientHello, client_hello_};
}

std::optional<Handshake::Reply> Handshake::step(const Frame& frame) {
  AREAL_CHECK(state_ != State::kDone);
  AREAL_CHECK(state_ != State::kRefused);
  if (frame.kind == FrameKind::kRefuse) {
    peer_reason_ = decode_reason(frame.payload);
    state_ = State::kRefused;
    refusal_ = Refusal::kRefusedByPeer;
    return std::nullopt;
  }
  if (state_ == State::kStart && !is_client() && frame.kind == FrameKind::kClientHello) {
    return take_client_hello(frame.payload);
  }
  if (state_ == State::kAwaitServerHello && frame.kind == FrameKind::kServerHello) {
    return take_server_hello(frame.payload);
  }
  if (state_ == State::kAwaitProof && frame.kind == FrameKind::kClientProof) return take_proof(frame.payload);
  return refuse(Refusal::kBadKind);
}

std::optional<Handshake::Reply> Handshake::take_client_hello(std::span<const std::uint8_t> payload) {
  // A hello of another version may have another shape after its first word.
  if (payload.size() >= 8 && ByteReader(payload).u64() != setup_.version) return refuse(Refusal::kWrongVersion);
  const auto hello = decode_fields<ClientHello>(payload);
  if (!hello) return refuse(Refusal::kBadPayload);
  peer_ = hello->from;
  if (hello->run != setup_.run) return refuse(Refusal::kWrongRun);
  const bool fits_incarnation = hello->called.incarnation == 0 || hello->called.incarnation == setup_.self.incarnation;
  if (hello->called.node != setup_.self.node || !fits_incarnation) return refuse(Refusal::kWrongPeer);
  if (hello->from.node == setup_.self.node || hello->from.node == NodeId{}) return refuse(Refusal::kWrongPeer);
  client_hello_.assign(payload.begin(), payload.end());
  server_hello_ = encode_fields(
      ServerHello{.version = setup_.version, .run = setup_.run, .from = setup_.self, .nonce = setup_.nonce});
  Reply reply{FrameKind::kServerHello, server_hello_};
  const Mac256 proof = mac(kServerProof);
  reply.payload.insert(reply.payload.end(), proof.begin(), proof.end());
  state_ = State::kAwaitProof;
  return reply;
}

std::optional<Handshake::Reply> Handshake::take_server_hello(std::span<const std::uint8_t> payload) {
  if (payload.size() >= 8 && ByteReader(payload).u64() != setup_.version) return refuse(Refusal::kWrongVersion);
  if (payload.size() < sizeof(Mac256)) return refuse(Refusal::kBadPayload);
  const auto fields = payload.first(payload.size() - sizeof(Mac256));
  const auto hello = decode_fields<ServerHello>(fields);
  if (!hello) return refuse(Refusal::kBadPayload);
  if (hello->run != setup_.run) return refuse(Refusal::kWrongRun);
  // Until here the peer is whom we called.
  const bool fits_incarnation = peer_.incarnation == 0 || hello->from.incarnation == peer_.incarnation;
  if (hello->from.node != peer_.node || !fits_incarnation) return refuse(Refusal::kWrongPeer);
  server_hello_.assign(fields.begin(), fields.end());
  if (!equal_secretly(mac(kServerProof), payload.last(sizeof(Mac256)))) return refuse(Refusal::kWrongSecret);
  peer_ = hello->from;
  state_ = State::kDone;
  const Mac256 proof = mac(kClientProof);
  return Reply{FrameKind::kClientProof, {proof.begin(), proof.end()}};
}

std::optional<Handshake::Reply> Handshake::take_proof(std::span<const std::uint8_t> payload) {
  if (!equal_secretly(mac(kClientProof), payload)) return refuse(Refusal::kWrongSecret);
  state_ = State::kDone;
  return std::nullopt;
}

SessionKeys Handshake::keys() const {
  AREAL_CHECK(is_done());
  return {MacKey(mac(kKeyToServer)), MacKey(mac(kKeyToClient))};
}

}  // namespace areal::host
