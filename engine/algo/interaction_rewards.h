// Rewards of an agent's interactions within one episode: totals, discounts, and attempts that were given up.
//
// Interactions stand in the order in which they were made; each may have one parent, whose messages its own begin with.
// Discount d: from the last to the first, r_i := r_i + d * r_(i+1), with 0 for a reward that was not given.
// Not safe to share between threads. Source: the interaction cache of AReaL's agent proxy.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace areal::algo {

struct Interaction {
  std::string id;
  std::string messages;  // What it was asked; equal where the input messages are.
  std::string parent;    // An id; empty: none.
  double created = 0;    // Seconds.
  std::optional<double> reward;
};

class InteractionRewards {
 public:
  // kInvalid: the id is taken, or there is no such parent.
  Status add(Interaction interaction);
  // kInvalid: no such interaction.
  Status set_reward(std::string_view id, double reward);
  [[nodiscard]] double total() const { return total_; }
  [[nodiscard]] const std::vector<Interaction>& interactions() const { return interactions_; }
  // Those that are no other's parent: what concatenated export gives.
  [[nodiscard]] std::vector<std::string> leaves() const;

  // kInvalid: done before; it would discount twice.
  Status discount(double factor);
  // Of interactions that were asked the same, those without children go if another has some; if none has, only the one
  // made last stays (of equal times the one added last). Their rewards leave the total. Gives the ids that went.
  // kInvalid: after discount(): their rewards are in the earlier ones by then.
  Result<std::vector<std::string>> drop_retry_orphans();

 private:
  [[nodiscard]] bool has_children(std::string_view id) const;
  [[nodiscard]] bool is_orphan(std::size_t at) const;

  std::vector<Interaction> interactions_;
  double total_ = 0;
  bool discounted_ = false;
};

}  // namespace areal::algo
