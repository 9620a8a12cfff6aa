#include "replay/analyse/node_replayer.h"

#include <algorithm>

#include "replay/analyse/line_text.h"

namespace areal::analyse {

namespace {

constexpr std::string_view kNothing = "(nothing)";

port::TraceEvent with(const port::TraceEvent& event, const proto::Erased& erased) {
  port::TraceEvent changed = event;
  changed.what = port::TraceWhat::kEffect;
  changed.record = erased.record;
  changed.body = erased.body;
  return changed;
}

bool is_same(const port::TraceEvent& event, const proto::Erased& erased) {
  return event.record == erased.record && event.body == erased.body;
}

// Where the two lines, of one sort, hold other values; "-" where one has no such field.
std::vector<ValueDifference> field_differences(const std::vector<NamedValue>& left,
                                               const std::vector<NamedValue>& right) {
  std::vector<ValueDifference> out;
  for (const NamedValue& field : left) {
    const auto other = std::ranges::find(right, field.name, &NamedValue::name);
    std::string value = other != right.end() ? other->value : "-";
    if (value != field.value) out.push_back({field.name, field.value, std::move(value)});
  }
  for (const NamedValue& field : right) {
    if (std::ranges::find(left, field.name, &NamedValue::name) == left.end()) {
      out.push_back({field.name, "-", field.value});
    }
  }
  return out;
}

}  // namespace

NodeReplayer::NodeReplayer(const record::RunReader& reader, NodeToReplay node)
    : reader_(reader), node_(std::move(node)), slots_(node_.protocols) {
  result_.id = node_.id;
}

void NodeReplayer::on_event(const port::TraceEvent& event) {
  if (result_.difference || event.what == port::TraceWhat::kFault) return;
  if (event.what == port::TraceWhat::kInput) {
    if (is_open_) end_step(event.incarnation != incarnation_);
    if (!result_.difference) begin_step(event);
  } else if (event.rule != 0 || event.what == port::TraceWhat::kDropped) {
    ++result_.ruled;
  } else if (is_open_ && event.cause == input_.seq) {
    compare_effect(event);
  } else {
    const TraceLine recorded = event;
    differ(event, &recorded, nullptr);
  }
  last_ = event;
}

void NodeReplayer::begin_step(const port::TraceEvent& event) {
  if (event.incarnation != incarnation_) {
    incarnation_ = event.incarnation;
    ++result_.incarnations;
    slots_ = node_.protocols;
  }
  if (event.slot.value >= slots_.size()) return differ(event, event_line(reader_, event), "(no such protocol)");
  const auto input = proto::input_of({event.record, event.body});
  if (!input) return differ(event, event_line(reader_, event), "(no input that this program knows)");
  proto::Outbox out;
  slots_[event.slot.value].step(*input, out);
  ++result_.inputs;
  made_.clear();
  for (const proto::Effect& effect : out.effects()) made_.push_back(proto::erase(effect));
  next_ = 0;
  input_ = event;
  is_open_ = true;
}

bool NodeReplayer::may_be_unseen(const proto::Erased& effect) const {
  const auto is_ruled = [this](KindId kind) {
    return std::ranges::find(node_.ruled_kinds, kind) != node_.ruled_kinds.end();
  };
  return is_ruled(effect.record.kind) || (effect.body.kind != 0 && is_ruled(effect.body.kind));
}

void NodeReplayer::compare_effect(const port::TraceEvent& event) {
  std::size_t place = next_;
  while (place < made_.size() && !is_same(event, made_[place]) && may_be_unseen(made_[place])) ++place;
  if (place < made_.size() && is_same(event, made_[place])) {
    result_.unseen += place - next_;
    next_ = place + 1;
    ++result_.effects;
    return;
  }
  const TraceLine recorded = event;
  if (next_ == made_.size()) return differ(event, &recorded, nullptr);
  const TraceLine replayed = with(event, made_[next_]);
  differ(event, &recorded, &replayed);
}

void NodeReplayer::end_step(bool is_cut) {
  is_open_ = false;
  for (; next_ < made_.size() && !is_cut; ++next_) {
    if (!may_be_unseen(made_[next_])) {
      port::TraceEvent missing = with(input_, made_[next_]);
      missing.cause = input_.seq;
      const TraceLine replayed = missing;
      return differ(last_, nullptr, &replayed);
    }
    ++result_.unseen;
  }
  if (is_cut) ++result_.cut;
}

void NodeReplayer::on_state(SlotId slot, const Digest128& digest) {
  if (result_.difference) return;
  if (!is_open_ || slot != input_.slot) {
    const TraceLine recorded = StateLine{node_.id, slot, digest};
    return differ(last_, &recorded, nullptr);
  }
  end_step(false);
  if (result_.difference) return;
  const Digest128 now = slots_[slot.value].digest();
  if (now == digest) {
    ++result_.states;
    return;
  }
  const TraceLine recorded = StateLine{node_.id, slot, digest};
  const TraceLine replayed = StateLine{node_.id, slot, now};
  differ(last_, &recorded, &replayed);
}

void NodeReplayer::finish() {
  if (is_open_ && !result_.difference) end_step(true);
}

void NodeReplayer::differ(const port::TraceEvent& at, const TraceLine* recorded, const TraceLine* replayed) {
  const auto text = [this](const TraceLine* line) {
    return line != nullptr ? line_text(reader_, *line) : std::string(kNothing);
  };
  differ(at, text(recorded), text(replayed));
  if (recorded == nullptr || replayed == nullptr) return;
  result_.difference->fields = field_differences(line_fields(reader_, *recorded), line_fields(reader_, *replayed));
}

void NodeReplayer::differ(const port::TraceEvent& at, std::string recorded, std::string replayed) {
  result_.difference = NodeDifference{at.seq, at.slot, std::move(recorded), std::move(replayed), {}};
}

namespace {

// Hands each line to the replayer of its node.
class Distributor : public port::EventSink {
 public:
  explicit Distributor(std::vector<NodeReplayer>& replayers) : replayers_(replayers) {
    for (std::size_t i = 0; i < replayers.size(); ++i) places_.push_back({replayers[i].result().id, i});
    std::ranges::stable_sort(places_, {}, &Place::id);
  }

  void on_event(const port::TraceEvent& event) override {
    if (NodeReplayer* replayer = find(event.node); replayer != nullptr) replayer->on_event(event);
  }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override {
    if (NodeReplayer* replayer = find(node); replayer != nullptr) replayer->on_state(slot, digest);
  }

 private:
  struct Place {
    NodeId id;
    std::size_t index = 0;
  };
  [[nodiscard]] NodeReplayer* find(NodeId id) const {
    const auto place = std::ranges::lower_bound(places_, id, {}, &Place::id);
    return place != places_.end() && place->id == id ? &replayers_[place->index] : nullptr;
  }

  std::vector<NodeReplayer>& replayers_;
  std::vector<Place> places_;
};

}  // namespace

Result<std::vector<NodeReplay>> replay_nodes(const record::RunReader& reader, std::vector<NodeToReplay> nodes) {
  std::vector<NodeReplayer> replayers;
  replayers.reserve(nodes.size());
  for (NodeToReplay& node : nodes) replayers.emplace_back(reader, std::move(node));
  Distributor distributor(replayers);
  AREAL_TRY(reader.read_all(distributor));
  std::vector<NodeReplay> results;
  for (NodeReplayer& replayer : replayers) {
    replayer.finish();
    results.push_back(replayer.result());
  }
  return results;
}

}  // namespace areal::analyse
