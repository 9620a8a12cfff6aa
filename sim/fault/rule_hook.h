// Rewrites the inputs and effects of nodes as a scenario's rules say, and keeps the probes that the rules read.
//
// Rules apply in the order of the scenario; each sees what the earlier ones left. What a rule changed, made or dropped
// carries its number, counted from 1. Notes are effects and pass by like any other; the latest of each kind that a rule
// reads is kept as it finally was. What happens at another node carries that node's id: the world routes it.
//
// A value; a copy goes on from the same counts. Not thread-safe.
#pragma once
#include <span>
#include <vector>

#include "engine/port/fault_hook.h"
#include "sim/fault/rule.h"

namespace areal::sim {

class RuleHook final : public port::FaultHook {
 public:
  RuleHook() = default;
  // Errors name the line and what would be right.
  static Result<RuleHook> make(std::span<const config::RuleSpec> specs, const KindTable& kinds,
                               const NodeDirectory& directory);

  [[nodiscard]] bool leaves_alone(bool is_input, KindId record, KindId body) const override;
  void on_pass(const port::Passing& passing, std::vector<port::Passing>& out) override;

  [[nodiscard]] bool empty() const { return rules_.empty(); }
  [[nodiscard]] std::span<const Rule> rules() const { return rules_; }
  // How often a rule acted. REQUIRES: 1 <= rule <= rules().size().
  [[nodiscard]] std::uint64_t acted(std::uint32_t rule) const { return acted_[rule - 1]; }
  // Events that wait for the next one of their kind to swap with.
  [[nodiscard]] std::size_t held() const { return held_.size(); }

  // Counts, held events and probes; load() expects the same rules.
  void save(StateWriter& writer) const;
  bool load(StateReader& reader);

 private:
  struct Held {
    std::uint32_t rule = 0;
    port::Passing passing;
  };

  void apply(std::uint32_t number, const port::Passing& passing, std::vector<port::Passing>& out);
  bool release_held(std::uint32_t number, const port::Passing& passing, std::vector<port::Passing>& out);
  void act(std::uint32_t number, port::Passing passing, std::vector<port::Passing>& out);
  static void drop(std::uint32_t number, port::Passing passing, std::vector<port::Passing>& out);
  void answer(std::uint32_t number, const port::Passing& passing, std::vector<port::Passing>& out) const;
  void emit(std::uint32_t number, const port::Passing& passing, std::vector<port::Passing>& out) const;
  void forget_held(NodeId node);

  std::vector<Rule> rules_;
  KindFilter filter_;
  ProbeStore probes_;
  std::vector<std::uint64_t> acted_;
  std::vector<Held> held_;
  std::vector<port::Passing> now_;  // Only of the present on_pass(), kept for their storage.
  std::vector<port::Passing> next_;
};

}  // namespace areal::sim
