#include "engine/real/accel/gloo_moves.h"

#include <gloo/transport/unbound_buffer.h>

#include <span>
#include <type_traits>

namespace areal::accel {
namespace {

struct Move {
  std::uint32_t peer = 0;
  Mesh::Buffer buffer{};
};

// Operations under way, several at once; nothing moves for an empty piece.
class Moves {
 public:
  Moves(Mesh& mesh, std::uint64_t slot) : mesh_(mesh), slot_(slot) {}

  void receive(std::uint32_t peer, std::span<std::byte> bytes) {
    if (bytes.empty()) return;
    in_.push_back({peer, mesh_.buffer(bytes.data(), bytes.size())});
    mesh_.receive(in_.back().buffer, peer, slot_);
  }
  void send(std::uint32_t peer, std::span<std::byte> bytes) {
    if (bytes.empty()) return;
    out_.push_back({peer, mesh_.buffer(bytes.data(), bytes.size())});
    mesh_.send(out_.back().buffer, peer, slot_);
  }
  void wait() {
    for (Move& move : in_) mesh_.wait_received(move.buffer, move.peer);
    for (Move& move : out_) mesh_.wait_sent(move.buffer, move.peer);
  }

 private:
  Mesh& mesh_;
  std::uint64_t slot_;
  std::vector<Move> in_;
  std::vector<Move> out_;
};

// Whole numbers wrap around.
template <class Number>
void add(Number& sum, Number number) {
  if constexpr (std::is_integral_v<Number>) {
    sum = static_cast<Number>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(number));
  } else {
    sum += number;
  }
}

// Every rank adds up one piece and hands the result to the others.
template <class Number>
void sum_over_group(Mesh& mesh, std::uint64_t slot, std::span<Number> numbers, std::vector<Number>& parts) {
  const std::uint32_t world = mesh.world();
  const std::uint32_t rank = mesh.rank();
  const auto piece = [&](std::uint32_t of) {
    const std::size_t begin = numbers.size() * of / world;
    return numbers.subspan(begin, numbers.size() * (of + std::size_t{1}) / world - begin);
  };
  const std::span<Number> mine = piece(rank);
  parts.resize(mine.size() * world);
  const auto part = [&](std::uint32_t of) { return std::span(parts).subspan(of * mine.size(), mine.size()); };
  {
    Moves moves(mesh, slot);
    for (std::uint32_t peer = 0; peer < world; ++peer) {
      if (peer != rank) moves.receive(peer, std::as_writable_bytes(part(peer)));
    }
    for (std::uint32_t peer = 0; peer < world; ++peer) {
      if (peer != rank) moves.send(peer, std::as_writable_bytes(piece(peer)));
    }
    moves.wait();
  }
  std::ranges::copy(mine, part(rank).begin());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    mine[i] = part(0)[i];
    for (std::uint32_t of = 1; of < world; ++of) add(mine[i], part(of)[i]);
  }
  Moves moves(mesh, slot + 1);
  for (std::uint32_t peer = 0; peer < world; ++peer) {
    if (peer != rank) moves.receive(peer, std::as_writable_bytes(piece(peer)));
  }
  for (std::uint32_t peer = 0; peer < world; ++peer) {
    if (peer != rank) moves.send(peer, std::as_writable_bytes(mine));
  }
  moves.wait();
}

}  // namespace

void move_payload(Mesh& mesh, BatchWish& wish) {
  Moves moves(mesh, kPayloadSlot);
  for (PeerBytes& peer : wish.receives) moves.receive(peer.rank, peer.bytes);
  for (PeerBytes& peer : wish.sends) moves.send(peer.rank, peer.bytes);
  moves.wait();
}

void move_sums(Mesh& mesh, BatchWish& wish, SumParts& parts) {
  sum_over_group<float>(mesh, kSumSlots, wish.sums, parts.sums);
  sum_over_group<std::int64_t>(mesh, kSumSlots + 2, wish.statuses, parts.statuses);
}

}  // namespace areal::accel
