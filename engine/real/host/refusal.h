// Why bytes, connections or messages were not taken; one list, so that every reason has one counter and one name.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace areal::host {

enum class Refusal : std::uint8_t {
  kNone,
  // Of frames.
  kBadMagic,
  kBadVersion,  // Of the frame format.
  kTooLong,
  kBadChecksum,
  kOutOfOrder,
  kBadKind,
  kBadPayload,
  // Of handshakes and of what follows them.
  kWrongVersion,  // Of the protocol above the frames.
  kWrongRun,
  kWrongPeer,         // Not the node or incarnation that was called, or the caller claims to be the called one.
  kWrongSecret,       // A proof that the secret of this run and these nonces do not give.
  kBadTag,            // A frame that was not made under this session's key at this place.
  kStaleIncarnation,  // A later start of that node was seen already.
  kRefusedByPeer,
  // Of connections.
  kHandshakeTimeout,
  kClosedEarly,  // Ended before the handshake did.
  kTooManyStrangers,
  kTooManyPeers,
  kStalled,  // The peer took nothing for too long.
  // Of messages on their way out.
  kQueueFull,
  kExpired,
  kPeerUnknown,
  kUnreachable,
  kPeerReplaced,  // It was for a process that has a successor by now.
};
constexpr std::array<std::string_view, 25> enum_names(Refusal /*tag*/) {
  return {"none",
          "bad_magic",
          "bad_version",
          "too_long",
          "bad_checksum",
          "out_of_order",
          "bad_kind",
          "bad_payload",
          "wrong_version",
          "wrong_run",
          "wrong_peer",
          "wrong_secret",
          "bad_tag",
          "stale_incarnation",
          "refused_by_peer",
          "handshake_timeout",
          "closed_early",
          "too_many_strangers",
          "too_many_peers",
          "stalled",
          "queue_full",
          "expired",
          "peer_unknown",
          "unreachable",
          "peer_replaced"};
}
inline constexpr std::size_t kRefusals = enum_names(Refusal{}).size();

}  // namespace areal::host
