// Mutual proof that both ends of a connection know the run's secret, and the session keys that follow from it.
//
//   client hello   version, run, own node and incarnation, those of the called one, nonce
//   server hello   version, run, own node and incarnation, nonce; MAC("server", both hellos)
//   client proof   MAC("client", both hellos)
//
// MAC is HMAC-SHA256 (RFC 2104) under the secret, over the direction's name, the whole client hello and the server
// hello without its MAC: so over both nonces, both identities, run and version. Each direction has its own session key,
// MAC("key to server") and MAC("key to client") over the same. Both nonces are fresh, so a hello or a proof that was
// recorded fits no later connection, and the names of directions keep one end's proof from being handed back to it.
// This proves who speaks and that nothing was changed; it hides nothing.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/fields.h"
#include "engine/real/host/frame_codec.h"
#include "engine/real/host/mac.h"

namespace areal::host {

inline constexpr std::uint64_t kProtocolVersion = 1;
// No payload of a handshake is longer, so a stranger never makes us hold more.
inline constexpr std::size_t kMaxHandshakePayload = 256;

using Nonce = std::array<std::uint64_t, 4>;

struct Identity {
  NodeId node{};
  Incarnation incarnation = 0;
  AREAL_FIELDS(node, incarnation)
  bool operator==(const Identity&) const = default;
};

// What one end brings along.
struct HandshakeSetup {
  std::uint64_t run = 0;
  Identity self{};
  std::optional<Identity> called{};  // By a client; a server has none. Incarnation 0: any.
  Nonce nonce{};                     // Fresh for every connection.
  std::uint64_t version = kProtocolVersion;
};

struct SessionKeys {
  MacKey to_server;
  MacKey to_client;
};

// One end's part as a pure machine: frames in, payloads out. Not thread-safe.
//
// Invariant: keys are there if and only if the state is kDone, and then peer() is who has proved itself.
class Handshake {
 public:
  struct Reply {
    FrameKind kind = FrameKind::kClientHello;
    std::vector<std::uint8_t> payload;
  };

  Handshake(const HandshakeSetup& setup, MacKey secret);

  // What a client says first; nothing for a server. Called once, before step().
  [[nodiscard]] std::optional<Reply> start();
  // Takes a frame of the peer. What is to be sent back, if something is: also the reason of a refusal, so that an
  // honest peer with other settings can say what is wrong. REQUIRES: !is_done(), refusal() == kNone.
  [[nodiscard]] std::optional<Reply> step(const Frame& frame);

  [[nodiscard]] bool is_client() const { return setup_.called.has_value(); }
  [[nodiscard]] bool is_done() const { return state_ == State::kDone; }
  [[nodiscard]] Refusal refusal() const { return refusal_; }
  // Why the peer refused, by its own account; kNone if refusal() is not kRefusedByPeer.
  [[nodiscard]] Refusal peer_reason() const { return peer_reason_; }
  // Of the other end: proved when is_done(), else what it claims, or whom we called.
  [[nodiscard]] const Identity& peer() const { return peer_; }
  // REQUIRES: is_done().
  [[nodiscard]] SessionKeys keys() const;

 private:
  enum class State : std::uint8_t { kStart, kAwaitServerHello, kAwaitProof, kDone, kRefused };

  std::optional<Reply> take_client_hello(std::span<const std::uint8_t> payload);
  std::optional<Reply> take_server_hello(std::span<const std::uint8_t> payload);
  std::optional<Reply> take_proof(std::span<const std::uint8_t> payload);
  std::optional<Reply> refuse(Refusal reason);
  [[nodiscard]] Mac256 mac(std::string_view direction) const;

  HandshakeSetup setup_;
  MacKey secret_;
  State state_ = State::kStart;
  Refusal refusal_ = Refusal::kNone;
  Refusal peer_reason_ = Refusal::kNone;
  Identity peer_{};
  std::vector<std::uint8_t> client_hello_;
  std::vector<std::uint8_t> server_hello_;  // Without its MAC.
};

// The payload of a kRefuse frame, and back; kNone if it is no such payload.
std::vector<std::uint8_t> encode_reason(Refusal reason);
Refusal decode_reason(std::span<const std::uint8_t> payload);

}  // namespace areal::host
