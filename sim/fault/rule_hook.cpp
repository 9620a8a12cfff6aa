#include "sim/fault/rule_hook.h"

#include <algorithm>

#include "engine/port/types.h"

namespace areal::sim {
namespace {

using config::RuleAct;
using port::Passing;

const RecordTemplate* template_for(const Rule& rule, const Passing& passing) {
  const auto made = std::ranges::find(rule.made, passing.record.kind, &RecordTemplate::matched_record);
  return made == rule.made.end() ? nullptr : &*made;
}

void save_passing(StateWriter& writer, const Passing& passing) {
  writer.value(passing.node);
  writer.value(passing.slot);
  writer.value(passing.is_input);
  writer.value(passing.rule);
  writer.value(passing.delay);
  writer.value(passing.record);
  writer.value(passing.body);
}

void load_passing(StateReader& reader, Passing& passing) {
  reader.value(passing.node);
  reader.value(passing.slot);
  reader.value(passing.is_input);
  reader.value(passing.rule);
  reader.value(passing.delay);
  reader.value(passing.record);
  reader.value(passing.body);
}

}  // namespace

Result<RuleHook> RuleHook::make(std::span<const config::RuleSpec> specs, const KindTable& kinds,
                                const NodeDirectory& directory) {
  RuleHook hook;
  for (const config::RuleSpec& spec : specs) {
    auto rule = compile_rule(spec, {kinds, directory});
    if (!rule) return rule.error();
    hook.filter_.want(rule->match.kind().info->id);
    for_each_probe(*rule, [&hook](KindId kind) {
      hook.filter_.want(kind);
      hook.probes_.want(kind);
    });
    hook.rules_.push_back(std::move(*rule));
  }
  hook.acted_.resize(hook.rules_.size());
  return hook;
}

bool RuleHook::leaves_alone(bool is_input, KindId record, KindId body) const {
  const bool may_forget = !held_.empty() && is_input && record == port::Started::kKind;
  return !may_forget && !filter_.wants(record, body);
}

void RuleHook::on_pass(const Passing& passing, std::vector<Passing>& out) {
  if (leaves_alone(passing.is_input, passing.record.kind, passing.body.kind)) {
    out.push_back(passing);
    return;
  }
  if (passing.is_input && passing.record.kind == port::Started::kKind) forget_held(passing.node);
  now_.assign(1, passing);
  for (std::uint32_t number = 1; number <= rules_.size(); ++number) {
    next_.clear();
    for (const Passing& item : now_) apply(number, item, next_);
    now_.swap(next_);
  }
  for (const Passing& item : now_) {
    if (!item.dropped && item.record.kind == port::Note::kKind) probes_.see(item.node, item.body);
    out.push_back(item);
  }
}

void RuleHook::apply(std::uint32_t number, const Passing& passing, std::vector<Passing>& out) {
  Rule& rule = rules_[number - 1];
  if (passing.dropped || !rule.match.fits(passing.node, passing.is_input, passing.record, passing.body)) {
    out.push_back(passing);
    return;
  }
  const bool is_wanted = rule.match.hit(passing.node, passing.is_input, passing.record, passing.body);
  if (rule.act == RuleAct::kSwap && release_held(number, passing, out)) return;
  if (!is_wanted) {
    out.push_back(passing);
    return;
  }
  ++acted_[number - 1];
  act(number, passing, out);
}

bool RuleHook::release_held(std::uint32_t number, const Passing& passing, std::vector<Passing>& out) {
  const auto held = std::ranges::find_if(held_, [&](const Held& other) {
    return other.rule == number && other.passing.node == passing.node && other.passing.slot == passing.slot;
  });
  if (held == held_.end()) return false;
  out.push_back(passing);
  out.back().rule = number;
  out.push_back(held->passing);
  out.back().rule = number;
  held_.erase(held);
  return true;
}

void RuleHook::act(std::uint32_t number, Passing passing, std::vector<Passing>& out) {
  const Rule& rule = rules_[number - 1];
  switch (rule.act) {
    case RuleAct::kDrop:
      return drop(number, passing, out);
    case RuleAct::kRepeat:
      out.push_back(passing);
      passing.rule = number;
      out.push_back(passing);
      return;
    case RuleAct::kDelay:
      passing.delay = passing.delay + rule.delay;
      passing.rule = number;
      out.push_back(passing);
      return;
    case RuleAct::kSwap:
      held_.push_back({number, passing});
      return;
    case RuleAct::kFail:
    case RuleAct::kSet: {
      if (rule.answers) {
        drop(number, passing, out);
        return answer(number, passing, out);
      }
      const Passing matched = passing;  // Values are read before any is written.
      for (const Assignment& set : rule.sets) assign(set, matched, probes_, passing.record, passing.body);
      passing.rule = number;
      out.push_back(passing);
      return;
    }
    case RuleAct::kComplete:
      drop(number, passing, out);
      return answer(number, passing, out);
    case RuleAct::kEmit:
      out.push_back(passing);
      return emit(number, passing, out);
  }
}

// It does not happen; the trace says so.
void RuleHook::drop(std::uint32_t number, Passing passing, std::vector<Passing>& out) {
  passing.rule = number;
  passing.dropped = true;
  out.push_back(passing);
}

void RuleHook::answer(std::uint32_t number, const Passing& passing, std::vector<Passing>& out) const {
  const Rule& rule = rules_[number - 1];
  const RecordTemplate* made = template_for(rule, passing);
  AREAL_CHECK(made != nullptr);
  Passing reply{
      .node = passing.node, .slot = passing.slot, .rule = number, .delay = rule.delay, .record = {}, .body = {}};
  made->make(passing, probes_, reply);
  out.push_back(reply);
}

void RuleHook::emit(std::uint32_t number, const Passing& passing, std::vector<Passing>& out) const {
  const Rule& rule = rules_[number - 1];
  const RecordTemplate* made = template_for(rule, passing);
  AREAL_CHECK(made != nullptr);
  const std::vector<NodeId> same{passing.node};
  for (const NodeId node : rule.target.same_node ? std::span<const NodeId>(same) : rule.target.nodes.nodes()) {
    Passing emitted{.node = node, .slot = passing.slot, .rule = number, .delay = rule.delay, .record = {}, .body = {}};
    if (!rule.target.slots.empty()) emitted.slot = rule.target.slots[node.value];
    if (emitted.slot.value == UINT64_MAX) continue;  // This node has no such protocol.
    made->make(passing, probes_, emitted);
    out.push_back(emitted);
  }
}

// The process that held events were meant for, or came from, is gone.
void RuleHook::forget_held(NodeId node) {
  std::erase_if(held_, [node](const Held& held) { return held.passing.node == node; });
}

void RuleHook::save(StateWriter& writer) const {
  for (const Rule& rule : rules_) writer.value(rule.match.seen());
  writer.value(acted_);
  writer.value(static_cast<std::uint64_t>(held_.size()));
  for (const Held& held : held_) {
    writer.value(held.rule);
    save_passing(writer, held.passing);
  }
  probes_.save(writer);
}

bool RuleHook::load(StateReader& reader) {
  for (Rule& rule : rules_) {
    std::uint32_t seen = 0;
    reader.value(seen);
    rule.match.set_seen(seen);
  }
  std::vector<std::uint64_t> acted;
  reader.value(acted);
  std::uint64_t count = 0;
  reader.value(count);
  held_.clear();
  for (; count > 0 && reader.ok(); --count) {
    Held held;
    reader.value(held.rule);
    load_passing(reader, held.passing);
    held_.push_back(held);
  }
  if (!reader.ok() || acted.size() != rules_.size()) return false;
  acted_ = std::move(acted);
  return probes_.load(reader);
}

}  // namespace areal::sim
