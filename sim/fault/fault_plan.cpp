#include "sim/fault/fault_plan.h"

#include <algorithm>
#include <limits>

namespace areal::sim {
namespace {

using config::FaultKind;

constexpr Instant kForever{std::numeric_limits<std::int64_t>::max()};
// How finely an amount that is drawn is cut: choice 0 is the least.
constexpr std::uint64_t kSpread = 16;

bool is_message_fault(FaultKind kind) {
  return kind == FaultKind::kLoseMessage || kind == FaultKind::kDelayMessage || kind == FaultKind::kDuplicateMessage;
}

Odds odds_of(const config::Ratio& ratio) { return {ratio.numerator, ratio.denominator}; }

Instant end_of(Instant start, Duration lasts) { return lasts.ns > 0 ? start + lasts : kForever; }

}  // namespace

Result<FaultPlan> FaultPlan::make(std::span<const config::FaultSpec> specs, const config::BudgetSettings& budget,
                                  Profile profile, const KindTable& kinds, const NodeDirectory& directory) {
  auto faults = compile_faults(specs, profile, kinds, directory);
  if (!faults) return faults.error();
  FaultPlan plan;
  plan.faults_ = std::move(*faults);
  for (std::uint32_t i = 0; i < plan.faults_.size(); ++i) {
    const PlannedFault& fault = plan.faults_[i];
    const bool by_chance = fault.spec.chance.has_value();
    if (is_message_fault(fault.spec.kind) || (fault.is(FaultKind::kPartition) && by_chance))
      plan.of_messages_.push_back(i);
    if ((fault.is(FaultKind::kKill) || fault.is(FaultKind::kHang)) && by_chance) plan.of_processes_.push_back(i);
    if (!fault.when) continue;
    plan.of_events_.push_back(i);
    plan.filter_.want(fault.when->kind().info->id);
  }
  plan.engines_ = NodeSet::of_role(directory, port::Role::kEngine);
  plan.engines_down_max_ = budget.engines_down_max;
  // Without a time of its own a run heals when three quarters of the virtual time are gone.
  const std::int64_t heal_ns = budget.heal_at.ns > 0 ? budget.heal_at.ns : budget.virtual_max.ns / 4 * 3;
  if (!plan.faults_.empty()) plan.heal_at_ = Instant{heal_ns};
  plan.state_.faults.resize(plan.faults_.size());
  return plan;
}

void FaultPlan::start(const FaultContext& context) {
  for (std::uint32_t i = 0; i < faults_.size(); ++i) {
    const PlannedFault& fault = faults_[i];
    Progress& progress = state_.faults[i];
    const StreamKey coin{"fault.active", {i + 1}, {}};
    progress.active = context.decisions.draw_chance(coin, odds_of(fault.spec.active), context.sink);
    if (!progress.active) continue;
    if (fault.spec.at) schedule({Instant{fault.spec.at->ns} + fault.spec.after, i, {}});
    if (!fault.on_trigger()) {
      progress.open = true;
      progress.open_until = kForever;
    }
  }
}

std::optional<Instant> FaultPlan::next_timed() const {
  std::optional<Instant> next;
  if (heal_at_ && !state_.healed) next = heal_at_;
  if (!state_.due.empty() && (!next || state_.due.front().at < *next)) next = state_.due.front().at;
  return next;
}

void FaultPlan::fire_timed(const FaultContext& context, std::vector<FaultAction>& actions) {
  if (heal_at_ && !state_.healed && *heal_at_ <= context.now) heal(context);
  while (!state_.due.empty() && state_.due.front().at <= context.now) {
    const Due due = state_.due.front();
    state_.due.erase(state_.due.begin());
    set_off(due, context, actions);
  }
  std::erase_if(state_.windows, [&](const Window& window) { return window.until <= context.now; });
}

void FaultPlan::on_event(const port::TraceEvent& event, const FaultContext& context,
                         std::vector<FaultAction>& actions) {
  const bool is_input = event.what == port::TraceWhat::kInput;
  if (is_input && event.record.kind == port::Started::kKind) std::erase(state_.down, event.node);
  if (state_.healed || event.what == port::TraceWhat::kDropped) return;
  if (filter_.wants(event.record.kind, event.body.kind)) {
    for (const std::uint32_t i : of_events_) {
      PlannedFault& fault = faults_[i];
      if (!state_.faults[i].active || !fault.when->hit(event.node, is_input, event.record, event.body)) continue;
      const Due due{context.now + fault.spec.after, i, event.node};
      if (fault.spec.after.ns > 0) {
        schedule(due);
      } else {
        set_off(due, context, actions);
      }
    }
  }
  if (is_input && !of_processes_.empty()) try_process_chances(event.node, context, actions);
}

void FaultPlan::schedule(Due due) {
  const auto place = std::ranges::upper_bound(state_.due, due.at, {}, &Due::at);
  state_.due.insert(place, due);
}

void FaultPlan::set_off(const Due& due, const FaultContext& context, std::vector<FaultAction>& actions) {
  const PlannedFault& fault = faults_[due.fault];
  Progress& progress = state_.faults[due.fault];
  ++progress.scheduled;
  if (!may_act(due.fault)) {
    ++progress.skipped;
    return;
  }
  // Without a pattern the fault hits whoever set it off.
  const bool is_own = fault.spec.node.empty() && due.node.value != 0;
  if (is_own) progress.only = due.node;
  if (fault.spec.chance) {  // From now on by chance.
    progress.open = true;
    progress.open_until = kForever;
    return;
  }
  const std::vector<NodeId> own{due.node};
  const std::span<const NodeId> nodes = is_own ? std::span<const NodeId>(own) : fault.nodes.nodes();
  switch (fault.spec.kind) {
    case FaultKind::kKill:
    case FaultKind::kHang:
      for (const NodeId node : nodes) strike(due.fault, node, context, actions);
      return;
    case FaultKind::kPartition:
    case FaultKind::kSlowLink:
      open_window(due.fault, is_own ? due.node : NodeId{}, context);
      return;
    case FaultKind::kLoseMessage:
    case FaultKind::kDelayMessage:
    case FaultKind::kDuplicateMessage:
      arm(due.fault, {}, context.now);
      return;
    case FaultKind::kFailCompute:
    case FaultKind::kFlipByte:
    case FaultKind::kNoMemory:
      for (const NodeId node : nodes) arm(due.fault, node, context.now);
      return;
  }
}

// The next occasion at `node` is taken, or all of them while the fault lasts.
void FaultPlan::arm(std::uint32_t index, NodeId node, Instant now) {
  const PlannedFault& fault = faults_[index];
  Progress& progress = state_.faults[index];
  if (fault.spec.lasts.ns > 0 && !fault.is(FaultKind::kDelayMessage)) {
    progress.open = true;
    progress.open_until = end_of(now, fault.spec.lasts);
    return;
  }
  if (progress.armed.size() <= node.value) progress.armed.resize(node.value + 1);
  progress.armed[node.value] = std::max<std::uint32_t>(1, fault.spec.limit);
}

void FaultPlan::open_window(std::uint32_t index, NodeId node, const FaultContext& context) {
  const PlannedFault& fault = faults_[index];
  std::erase_if(state_.windows, [&](const Window& window) { return window.until <= context.now; });
  state_.windows.push_back({index, node, end_of(context.now, fault.spec.lasts)});
  const std::span<const NodeId> nodes = fault.nodes.nodes();
  const std::span<const NodeId> others = fault.others.nodes();
  FaultApplied what{.fault = index, .node = node, .lasts = fault.spec.lasts};
  if (node.value == 0 && nodes.size() == 1) what.node = nodes.front();
  if (fault.is(FaultKind::kPartition) && others.size() == 1) what.other = others.front();
  if (fault.is(FaultKind::kSlowLink)) what.detail = fault.spec.factor;
  applied(what);
}

void FaultPlan::strike(std::uint32_t index, NodeId node, const FaultContext& context,
                       std::vector<FaultAction>& actions) {
  const PlannedFault& fault = faults_[index];
  if (is_down(node) || !may_act(index)) return skip(index, node);
  if (fault.is(FaultKind::kKill)) {
    if (beyond_budget(node)) return skip(index, node);
    state_.down.push_back(node);
    actions.push_back({FaultAct::kKill, node, {}, index + 1});
    applied({.fault = index, .node = node});
    return;
  }
  actions.push_back({FaultAct::kHang, node, context.now + fault.spec.lasts, index + 1});
  applied({.fault = index, .node = node, .lasts = fault.spec.lasts});
}

void FaultPlan::try_process_chances(NodeId node, const FaultContext& context, std::vector<FaultAction>& actions) {
  for (const std::uint32_t i : of_processes_) {
    if (!faults_[i].nodes.contains(node) || is_down(node)) continue;
    if (!happens(i, node, {}, context)) continue;
    strike(i, node, context, actions);
  }
}

bool FaultPlan::happens(std::uint32_t index, NodeId a, NodeId b, const FaultContext& context) {
  if (!may_act(index)) return false;
  const PlannedFault& fault = faults_[index];
  Progress& progress = state_.faults[index];
  if (progress.only.value != 0 && progress.only != a && progress.only != b) return false;
  if (progress.open && context.now < progress.open_until) {
    if (!fault.spec.chance) return true;
    const StreamKey key{fault.stream, a, b};
    const bool drawn = context.decisions.draw_chance(key, odds_of(*fault.spec.chance), context.sink);
    progress.scheduled += drawn ? 1 : 0;
    return drawn;
  }
  const std::size_t place = is_message_fault(fault.spec.kind) ? 0 : a.value;
  if (place >= progress.armed.size() || progress.armed[place] == 0) return false;
  --progress.armed[place];
  return true;
}

bool FaultPlan::hits_message(const PlannedFault& fault, const MessageInfo& message) const {
  if (fault.body != 0 && fault.body != message.body) return false;
  const bool along = fault.nodes.contains(message.from) && fault.others.contains(message.to);
  const bool against = fault.nodes.contains(message.to) && fault.others.contains(message.from);
  // With one pattern alone: what comes and what goes. With two: from the one to the other.
  const bool both_ways = fault.spec.other.empty() || fault.is(FaultKind::kPartition);
  return along || (both_ways && against);
}

MessageFate FaultPlan::message_fate(const MessageInfo& message, const FaultContext& context) {
  MessageFate fate;
  const bool is_asked_again = message.kind != port::MessageKind::kOneWay;
  for (const std::uint32_t i : of_messages_) {
    const PlannedFault& fault = faults_[i];
    if (!state_.faults[i].active || !hits_message(fault, message)) continue;
    if (!is_asked_again && (fault.is(FaultKind::kLoseMessage) || fault.is(FaultKind::kDuplicateMessage))) continue;
    if (!happens(i, message.from, message.to, context)) continue;
    if (fault.is(FaultKind::kPartition)) {
      open_window(i, fault.nodes.contains(message.from) ? message.from : message.to, context);
      continue;
    }
    FaultApplied what{.fault = i, .node = message.from, .other = message.to, .detail = message.body};
    if (fault.is(FaultKind::kLoseMessage)) fate.lost = true;
    if (fault.is(FaultKind::kDuplicateMessage)) ++fate.copies;
    if (fault.is(FaultKind::kDelayMessage)) {
      what.lasts = lateness(i, message, context);
      fate.late = fate.late + what.lasts;
    }
    applied(what);
  }
  if (partitioned(message.from, message.to, context.now)) fate.lost = true;
  return fate;
}

Duration FaultPlan::lateness(std::uint32_t index, const MessageInfo& message, const FaultContext& context) {
  const PlannedFault& fault = faults_[index];
  if (!fault.spreads) return fault.spec.lasts;
  const std::string stream = fault.stream + ".by";
  const StreamKey key{stream, message.from, message.to};
  const std::uint64_t parts = 1 + context.decisions.draw_below(key, kSpread, context.sink);
  return {fault.spec.lasts.ns / static_cast<std::int64_t>(kSpread) * static_cast<std::int64_t>(parts)};
}

bool FaultPlan::partitioned(NodeId a, NodeId b, Instant now) const {
  return std::ranges::any_of(state_.windows, [&](const Window& window) {
    const PlannedFault& fault = faults_[window.fault];
    if (!fault.is(FaultKind::kPartition) || window.until <= now) return false;
    const auto inside = [&](NodeId node) {
      return window.node.value != 0 ? node == window.node : fault.nodes.contains(node);
    };
    // Without a second pattern the nodes are cut off from everyone else, not from each other.
    const auto outside = [&](NodeId node) {
      return fault.spec.other.empty() ? !inside(node) : fault.others.contains(node);
    };
    return (inside(a) && outside(b)) || (inside(b) && outside(a));
  });
}

std::uint32_t FaultPlan::payload_factor(NodeId node, const FaultContext& context) {
  std::uint32_t factor = 1;
  for (std::uint32_t i = 0; i < faults_.size(); ++i) {
    const PlannedFault& fault = faults_[i];
    if (!fault.is(FaultKind::kSlowLink) || !fault.spec.chance || !fault.nodes.contains(node)) continue;
    const bool is_slow = std::ranges::any_of(state_.windows, [&](const Window& window) {
      return window.fault == i && window.node == node && window.until > context.now;
    });
    if (!is_slow && happens(i, node, {}, context)) open_window(i, node, context);
  }
  for (const Window& window : state_.windows) {
    const PlannedFault& fault = faults_[window.fault];
    const bool hits = window.node.value != 0 ? window.node == node : fault.nodes.contains(node);
    if (fault.is(FaultKind::kSlowLink) && hits && window.until > context.now)
      factor = std::max(factor, fault.spec.factor);
  }
  return factor;
}

bool FaultPlan::take(FaultKind kind, NodeId node, std::uint64_t detail, const FaultContext& context) {
  bool taken = false;
  for (std::uint32_t i = 0; i < faults_.size(); ++i) {
    const PlannedFault& fault = faults_[i];
    if (!fault.is(kind) || !fault.nodes.contains(node)) continue;
    if (fault.compute && static_cast<std::uint64_t>(*fault.compute) != detail) continue;
    if (!happens(i, node, {}, context)) continue;
    applied({.fault = i, .node = node, .detail = detail});
    taken = true;
  }
  return taken;
}

bool FaultPlan::take_compute_failure(NodeId node, port::ComputeKind what, const FaultContext& context) {
  return take(FaultKind::kFailCompute, node, static_cast<std::uint64_t>(what), context);
}
bool FaultPlan::take_flip(NodeId node, const FaultContext& context) {
  return take(FaultKind::kFlipByte, node, 0, context);
}
bool FaultPlan::refuse_memory(NodeId node, const FaultContext& context) {
  return take(FaultKind::kNoMemory, node, 0, context);
}

void FaultPlan::node_down(NodeId node) {
  if (!is_down(node)) state_.down.push_back(node);
}

void FaultPlan::heal(const FaultContext& context) {
  if (state_.healed) return;
  state_.healed = true;
  std::uint64_t cut = 0;
  for (const Window& window : state_.windows) cut += window.until > context.now ? 1 : 0;
  state_.windows.clear();
  for (const Due& due : state_.due) {
    ++state_.faults[due.fault].scheduled;
    ++state_.faults[due.fault].skipped;
  }
  state_.due.clear();
  notices_.push_back({{}, to_record(Healed{cut})});
}

bool FaultPlan::may_act(std::uint32_t index) const {
  const Progress& progress = state_.faults[index];
  const std::uint32_t limit = faults_[index].spec.limit;
  return progress.active && !state_.healed && (limit == 0 || progress.applied < limit);
}

bool FaultPlan::beyond_budget(NodeId node) const {
  if (!engines_.contains(node)) return false;
  const auto dead = std::ranges::count_if(state_.down, [this](NodeId other) { return engines_.contains(other); });
  return static_cast<std::uint64_t>(dead) >= engines_down_max_;
}

bool FaultPlan::is_down(NodeId node) const { return std::ranges::find(state_.down, node) != state_.down.end(); }

void FaultPlan::skip(std::uint32_t index, NodeId node) {
  ++state_.faults[index].skipped;
  notices_.push_back({node, to_record(FaultSkipped{index + 1, name_of(faults_[index].spec.kind), node})});
}

// `what.fault` is an index; the trace counts from 1.
void FaultPlan::applied(const FaultApplied& what) {
  ++state_.faults[what.fault].applied;
  FaultApplied said = what;
  said.kind = name_of(faults_[what.fault].spec.kind);
  said.fault = what.fault + 1;
  notices_.push_back({said.node, to_record(said)});
}

std::vector<FaultNotice> FaultPlan::take_notices() {
  std::vector<FaultNotice> notices;
  notices.swap(notices_);
  return notices;
}

std::vector<FaultCount> FaultPlan::counts() const {
  std::vector<FaultCount> counts;
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    const Progress& progress = state_.faults[i];
    counts.push_back(
        {name_of(faults_[i].spec.kind), progress.active, progress.scheduled, progress.applied, progress.skipped});
  }
  return counts;
}

void FaultPlan::save(StateWriter& writer) const {
  writer.value(state_);
  for (const std::uint32_t i : of_events_) writer.value(faults_[i].when->seen());
}

bool FaultPlan::load(StateReader& reader) {
  State state;
  reader.value(state);
  for (const std::uint32_t i : of_events_) {
    std::uint32_t seen = 0;
    reader.value(seen);
    faults_[i].when->set_seen(seen);
  }
  if (!reader.ok() || state.faults.size() != faults_.size()) return false;
  state_ = std::move(state);
  notices_.clear();
  return true;
}

}  // namespace areal::sim
