// Which of several equal training replicas serves which inference replica.
//
// Inference replicas of a parameter are numbered engine by engine. With n training replicas and R inference replicas:
//   kRoundRobin    number i is served by replica i mod n. Source: spec/transfer.md 2.4; the reference's rule.
//   kFewestBytes   the first n * floor(R / n) go round robin; the R mod n that are left go to as many replicas, those
//                  whose busiest rank has the fewest bytes to send so far, of equal ones the lower numbers; in
//                  ascending order of their numbers. Parameters count in the order of the engines' names, bytes are
//                  those of the wire.
// Round robin gives what is left of every parameter to the first replicas: with 2 engines and 8 replicas six send
// nothing. By bytes, of replicas that hold the same parameters none ever sends more than one piece more than another.
// Both are functions of the layouts alone, so that all ranks come to the same answer.
//
// A value that moves on parameter by parameter; not thread-safe.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace areal::proto {

enum class ReplicaRule : std::uint8_t { kRoundRobin, kFewestBytes };
constexpr std::array<std::string_view, 2> enum_names(ReplicaRule /*tag*/) { return {"round_robin", "fewest_bytes"}; }

class ReplicaChoice {
 public:
  ReplicaChoice(ReplicaRule rule, std::uint32_t train_world)
      : rule_(rule), load_(rule == ReplicaRule::kFewestBytes ? train_world : 0, 0) {}

  struct Demand {
    std::uint32_t senders = 1;  // n.
    std::uint64_t served = 0;   // R.
  };

  // Moves on to the next parameter. each_piece(replica, visit) calls visit(training rank, wire bytes) for every piece
  // of a training replica. REQUIRES: demand.senders > 0.
  template <class EachPiece>
  void next(const Demand& demand, const EachPiece& each_piece);

  // The training replica that serves inference replica `number`. REQUIRES: number < served.
  [[nodiscard]] std::uint32_t replica_of(std::uint64_t number) const {
    return number < even_ || chosen_.empty() ? static_cast<std::uint32_t>(number % demand_.senders)
                                             : chosen_[number - even_];
  }

  // Calls visit(number), ascending, for every inference replica that `replica` serves.
  template <class Visit>
  void each_served(std::uint32_t replica, Visit&& visit) const;

  [[nodiscard]] ReplicaRule rule() const { return rule_; }
  // Bytes that each training rank has to send so far; empty for round robin, which does not count.
  [[nodiscard]] const std::vector<std::uint64_t>& load() const { return load_; }

 private:
  ReplicaRule rule_;
  Demand demand_;
  std::uint64_t even_ = 0;             // Numbers below this go round robin.
  std::vector<std::uint32_t> chosen_;  // Replicas for the rest, ascending. Empty: the rest goes round robin, too.
  std::vector<std::uint64_t> load_;    // By training rank.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order_;
};

template <class EachPiece>
void ReplicaChoice::next(const Demand& demand, const EachPiece& each_piece) {
  demand_ = demand;
  even_ = demand.served - demand.served % demand.senders;
  chosen_.clear();
  if (rule_ == ReplicaRule::kRoundRobin) return;
  const auto rest = static_cast<std::size_t>(demand.served - even_);
  if (rest > 0) {
    order_.clear();
    for (std::uint32_t replica = 0; replica < demand.senders; ++replica) {
      std::uint64_t busiest = 0;
      each_piece(replica, [&](std::uint32_t rank, std::uint64_t) { busiest = std::max(busiest, load_[rank]); });
      order_.emplace_back(busiest, replica);
    }
    // det-ok: unstable-sort: no two entries are equal, so which ones come first is certain; only they are looked at.
    std::ranges::nth_element(order_, order_.begin() + static_cast<std::ptrdiff_t>(rest));
    for (std::size_t i = 0; i < rest; ++i) chosen_.push_back(order_[i].second);
    std::ranges::stable_sort(chosen_);
  }
  auto next_chosen = chosen_.begin();
  for (std::uint32_t replica = 0; replica < demand.senders; ++replica) {
    std::uint64_t times = even_ / demand.senders;
    if (next_chosen != chosen_.end() && *next_chosen == replica) {
      ++times;
      ++next_chosen;
    }
    if (times == 0) continue;
    each_piece(replica, [&](std::uint32_t rank, std::uint64_t bytes) { load_[rank] += times * bytes; });
  }
}

template <class Visit>
void ReplicaChoice::each_served(std::uint32_t replica, Visit&& visit) const {
  const std::uint64_t end = chosen_.empty() ? demand_.served : even_;
  for (std::uint64_t number = replica; number < end; number += demand_.senders) visit(number);
  const auto place = std::ranges::lower_bound(chosen_, replica);
  if (place != chosen_.end() && *place == replica) visit(even_ + static_cast<std::uint64_t>(place - chosen_.begin()));
}

}  // namespace areal::proto
