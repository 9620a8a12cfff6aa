#include "engine/algo/interaction_rewards.h"

#include <fmt/format.h>

#include <algorithm>

namespace areal::algo {

Status InteractionRewards::add(Interaction interaction) {
  const auto known = [&](std::string_view id) {
    return std::ranges::any_of(interactions_, [&](const Interaction& other) { return other.id == id; });
  };
  if (known(interaction.id))
    return Error{Errc::kInvalid, fmt::format("interaction '{}' is there already", interaction.id)};
  if (!interaction.parent.empty() && !known(interaction.parent)) {
    return Error{Errc::kInvalid, fmt::format("there is no interaction '{}'", interaction.parent)};
  }
  total_ += interaction.reward.value_or(0);
  interactions_.push_back(std::move(interaction));
  return Unit{};
}

Status InteractionRewards::set_reward(std::string_view id, double reward) {
  const auto place = std::ranges::find_if(interactions_, [&](const Interaction& known) { return known.id == id; });
  if (place == interactions_.end()) return Error{Errc::kInvalid, fmt::format("there is no interaction '{}'", id)};
  total_ += reward - place->reward.value_or(0);
  place->reward = reward;
  return Unit{};
}

std::vector<std::string> InteractionRewards::leaves() const {
  std::vector<std::string> ids;
  for (const Interaction& interaction : interactions_) {
    if (!has_children(interaction.id)) ids.push_back(interaction.id);
  }
  return ids;
}

Status InteractionRewards::discount(double factor) {
  if (discounted_) return Error{Errc::kInvalid, "rewards are discounted already"};
  discounted_ = true;
  double later = 0;
  for (std::size_t at = interactions_.size(); at > 0; --at) {
    std::optional<double>& reward = interactions_[at - 1].reward;
    reward = reward.value_or(0) + factor * later;
    later = *reward;
  }
  return Unit{};
}

Result<std::vector<std::string>> InteractionRewards::drop_retry_orphans() {
  if (discounted_) return Error{Errc::kInvalid, "rewards are discounted already"};
  std::vector<std::string> dropped;
  std::vector<Interaction> kept;
  for (std::size_t at = 0; at < interactions_.size(); ++at) {
    if (is_orphan(at)) {
      dropped.push_back(interactions_[at].id);
      total_ -= interactions_[at].reward.value_or(0);
    } else {
      kept.push_back(interactions_[at]);
    }
  }
  interactions_ = std::move(kept);
  return dropped;
}

bool InteractionRewards::has_children(std::string_view id) const {
  return std::ranges::any_of(interactions_, [&](const Interaction& other) { return other.parent == id; });
}

bool InteractionRewards::is_orphan(std::size_t at) const {
  const Interaction& self = interactions_[at];
  if (has_children(self.id)) return false;
  for (std::size_t other = 0; other < interactions_.size(); ++other) {
    const Interaction& sibling = interactions_[other];
    if (other == at || sibling.messages != self.messages) continue;
    const bool later = sibling.created > self.created || (sibling.created == self.created && other > at);
    if (has_children(sibling.id) || later) return true;
  }
  return false;
}

}  // namespace areal::algo
