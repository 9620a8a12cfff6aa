// How the n-th batches of all members meet: each learns every member's card and draws the same conclusion.
//
// Cards travel by doubling: in step k a member gets from the one 2^k ranks on all the cards that one has, so that all
// are known after ceil(log2 world) steps. What the next meeting receives is asked for before this one ends: a card then
// never waits for its receiver.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/real/accel/gloo_groups.h"
#include "engine/real/accel/gloo_mesh.h"

namespace areal::accel {

// What a member says of its batch. Words: kind, tag, value, count, sums, statuses, whether the wish is well formed,
// then the bytes that it sends to each rank and those that it expects from each rank.
using Card = std::vector<std::uint64_t>;

Card card_of(const BatchWish& wish, std::uint32_t rank, std::uint32_t world);

// The card of a member that has nothing to say but that it is there.
Card plain_card(std::uint32_t world);

struct Verdict {
  bool fits = false;
  std::uint64_t value = 0;  // Reduced over all members if the kind reduces, else those of `rank`.
  std::uint64_t count = 0;
};

// `cards` holds those of all ranks in a row. The same for all members if it does not fit.
Verdict judge(std::span<const std::uint64_t> cards, std::uint32_t rank, std::uint32_t world);

// Used by the group's worker only.
class Meeting {
 public:
  // REQUIRES: `mesh` is connected and outlives this.
  explicit Meeting(Mesh& mesh);
  // The cards of all ranks in a row, valid until the next exchange. Throws MeshFailure.
  std::span<const std::uint64_t> exchange(const Card& own);
  // Takes part in nothing any more. Cards may still be arriving: their memory stays until this is gone, so the mesh is
  // closed before.
  void end();

 private:
  // Cards in the order of ranks from our own on; two meetings may overlap.
  struct Table {
    std::vector<std::uint64_t> words;
    std::vector<Mesh::Buffer> in;   // By step.
    std::vector<Mesh::Buffer> out;  // By step.
    std::vector<bool> asked;        // By step: its receive is under way.
  };
  [[nodiscard]] std::uint32_t sender(std::uint32_t step) const;
  [[nodiscard]] std::uint32_t receiver(std::uint32_t step) const;

  Mesh& mesh_;
  std::uint32_t rank_;
  std::uint32_t world_;
  std::size_t card_words_;
  std::uint32_t steps_ = 0;
  std::uint64_t turn_ = 0;
  Table tables_[2];
  std::vector<std::uint64_t> by_rank_;
};

}  // namespace areal::accel
