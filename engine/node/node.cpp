#include "engine/node/node.h"

#include <algorithm>

#include "engine/node/effect_runner.h"

namespace areal::node {

void Node::start(Incarnation incarnation) {
  AREAL_CHECK(incarnation > incarnation_);
  incarnation_ = incarnation;
  slots_ = initial_;
  alive_ = true;
}

void Node::step(const Delivery& delivery, Ports& ports) {
  AREAL_CHECK(alive_);
  AREAL_CHECK(delivery.slot.value < slots_.size());
  if (ports.hook() == nullptr) {
    deliver(delivery.slot, delivery.input, proto::erase(delivery.input), {delivery.origin, 0}, ports);
    return;
  }
  const proto::Erased erased = proto::erase(delivery.input);
  if (ports.hook()->leaves_alone(true, erased.record.kind, erased.body.kind)) {
    deliver(delivery.slot, delivery.input, erased, {delivery.origin, 0}, ports);
    return;
  }
  std::vector<port::Passing> passed;
  ports.hook()->on_pass({id_, delivery.slot, true, 0, {}, false, erased.record, erased.body}, passed);
  for (const port::Passing& passing : passed) {
    if (passing.dropped) {
      report(passing.slot, port::TraceWhat::kDropped, {passing.record, passing.body}, delivery.origin.seq, passing.rule,
             ports);
    } else if (passing.delay.ns > 0 || passing.node != id_) {
      ports.defer(passing, delivery.origin);
    } else {
      run_passed(passing, delivery.origin, ports);
    }
  }
}

void Node::run_passed(const port::Passing& passing, const Origin& origin, Ports& ports) {
  AREAL_CHECK(alive_);
  if (passing.slot.value >= slots_.size()) return;  // A rule's mistake; it named a protocol that this node lacks.
  const proto::Erased erased{passing.record, passing.body};
  if (passing.is_input) {
    if (const auto input = proto::input_of(erased))
      deliver(passing.slot, *input, proto::erase(*input), {origin, passing.rule}, ports);
  } else if (const auto effect = proto::effect_of(erased)) {
    carry_out(passing.slot, *effect, erased, origin.seq, passing.rule, ports);
  }
}

void Node::deliver(SlotId slot, const proto::Input& input, const proto::Erased& erased, const Cause& cause,
                   Ports& ports) {
  lamport_ = std::max(lamport_, cause.origin.lamport);
  const std::uint64_t seq = report(slot, port::TraceWhat::kInput, erased, cause.origin.seq, cause.rule, ports);
  proto::Outbox out;
  slots_[slot.value].step(input, out);
  for (const proto::Effect& effect : out.effects()) pass_effect(slot, effect, seq, ports);
  ports.sink().on_state(id_, slot, slots_[slot.value].digest());
}

void Node::pass_effect(SlotId slot, const proto::Effect& effect, std::uint64_t cause, Ports& ports) {
  const proto::Erased erased = proto::erase(effect);
  if (ports.hook() == nullptr || ports.hook()->leaves_alone(false, erased.record.kind, erased.body.kind)) {
    carry_out(slot, effect, erased, cause, 0, ports);
    return;
  }
  std::vector<port::Passing> passed;
  ports.hook()->on_pass({id_, slot, false, 0, {}, false, erased.record, erased.body}, passed);
  for (const port::Passing& passing : passed) {
    if (passing.dropped) {
      report(passing.slot, port::TraceWhat::kDropped, {passing.record, passing.body}, cause, passing.rule, ports);
    } else if (passing.delay.ns > 0 || passing.is_input || passing.node != id_) {
      ports.defer(passing, {cause, lamport_});
    } else {
      run_passed(passing, {cause, lamport_}, ports);
    }
  }
}

void Node::carry_out(SlotId slot, const proto::Effect& effect, const proto::Erased& erased, std::uint64_t cause,
                     std::uint32_t rule, Ports& ports) {
  const std::uint64_t seq = report(slot, port::TraceWhat::kEffect, erased, cause, rule, ports);
  ports.begin_effect({seq, lamport_});
  run_effect(slot, effect, ports);
}

std::uint64_t Node::report(SlotId slot, port::TraceWhat what, const proto::Erased& erased, std::uint64_t cause,
                           std::uint32_t rule, Ports& ports) {
  ++lamport_;
  const port::TraceEvent event{.seq = ports.next_seq(),
                               .cause = cause,
                               .lamport = lamport_,
                               .at = ports.clock().now(),
                               .node = id_,
                               .incarnation = incarnation_,
                               .slot = slot,
                               .what = what,
                               .rule = rule,
                               .record = erased.record,
                               .body = erased.body};
  ports.sink().on_event(event);
  return event.seq;
}

void Node::save(StateWriter& writer) const {
  writer.value(id_);
  writer.value(incarnation_);
  writer.value(alive_);
  writer.value(lamport_);
  for (const ProtocolBox& slot : slots_) slot.save(writer);
}

bool Node::load(StateReader& reader) {
  NodeId saved{};
  reader.value(saved);
  if (saved != id_) return false;
  reader.value(incarnation_);
  reader.value(alive_);
  reader.value(lamport_);
  slots_ = initial_;
  if (incarnation_ == 0) slots_.clear();
  return std::ranges::all_of(slots_, [&](ProtocolBox& slot) { return slot.load(reader); }) && reader.ok();
}

}  // namespace areal::node
