#include "tests/contract/open_asks.h"

#include <algorithm>
#include <variant>

namespace areal::test {
namespace {

// Which input ends an effect, if one does.
struct EndOf {
  NodeId node{};
  SlotId slot{};

  [[nodiscard]] std::optional<OpenAsk> ask(KindId kind, std::uint64_t id) const {
    return OpenAsk{node, slot, kind, id};
  }
  [[nodiscard]] std::optional<OpenAsk> shared(KindId kind, std::uint64_t id) const {
    return OpenAsk{node, slot, kind, id, true};
  }

  // Messages and tells carry no id: any will do.
  std::optional<OpenAsk> operator()(const port::Send& e) const {
    return OpenAsk{e.to, e.to_slot, port::MessageIn::kKind, 0, true};
  }
  std::optional<OpenAsk> operator()(const port::Tell& e) const {
    return OpenAsk{node, e.to_slot, port::TellIn::kKind, 0};
  }
  std::optional<OpenAsk> operator()(const port::ArmTimer& e) const {
    return ask(port::TimerFired::kKind, e.timer.value);
  }
  std::optional<OpenAsk> operator()(const port::JoinGroup& e) const {
    return shared(port::GroupJoined::kKind, e.group.value);
  }
  std::optional<OpenAsk> operator()(const port::PostBatch& e) const {
    return shared(port::BatchDone::kKind, e.batch.value);
  }
  std::optional<OpenAsk> operator()(const port::AbortGroup& e) const {
    return ask(port::GroupAborted::kKind, e.group.value);
  }
  std::optional<OpenAsk> operator()(const port::StartCompute& e) const {
    return ask(port::ComputeDone::kKind, e.op.value);
  }
  std::optional<OpenAsk> operator()(const port::ReserveBuffer& e) const {
    return ask(port::BufferReady::kKind, e.buffer.value);
  }
  std::optional<OpenAsk> operator()(const port::ReleaseBuffer& e) const {
    return ask(port::BufferReleased::kKind, e.buffer.value);
  }
  std::optional<OpenAsk> operator()(const port::QueryMemory& e) const {
    return ask(port::MemoryUsed::kKind, e.op.value);
  }
  std::optional<OpenAsk> operator()(const port::StorePut& e) const { return ask(port::StoreDone::kKind, e.op.value); }
  std::optional<OpenAsk> operator()(const port::StoreGet& e) const { return ask(port::StoreDone::kKind, e.op.value); }
  std::optional<OpenAsk> operator()(const port::LeasePort& e) const { return ask(port::PortLeased::kKind, e.op.value); }
  std::optional<OpenAsk> operator()(const port::StartProcess& e) const {
    return ask(port::ProcessStarted::kKind, e.op.value);
  }
  template <class Other>
  std::optional<OpenAsk> operator()(const Other& /*effect*/) const {
    return std::nullopt;
  }
};

struct IdOf {
  std::uint64_t operator()(const port::TimerFired& i) const { return i.timer.value; }
  std::uint64_t operator()(const port::GroupJoined& i) const { return i.group.value; }
  std::uint64_t operator()(const port::BatchDone& i) const { return i.batch.value; }
  std::uint64_t operator()(const port::GroupAborted& i) const { return i.group.value; }
  std::uint64_t operator()(const port::BufferReady& i) const { return i.buffer.value; }
  std::uint64_t operator()(const port::BufferReleased& i) const { return i.buffer.value; }
  std::uint64_t operator()(const port::ProcessExited& i) const { return i.node.value; }
  template <class Other>
    requires requires(const Other& input) { input.op; }
  std::uint64_t operator()(const Other& i) const {
    return i.op.value;
  }
  template <class Other>
  std::uint64_t operator()(const Other& /*input*/) const {
    return 0;
  }
};

KindId kind_of(const proto::Input& input) {
  return std::visit([](const auto& typed) { return std::decay_t<decltype(typed)>::kKind; }, input);
}

bool goes_on(const proto::Input& input) {
  const auto* done = std::get_if<port::ComputeDone>(&input);
  return done != nullptr && done->what == port::ComputeKind::kGenerate && done->total == 1;
}

}  // namespace

void OpenAsks::asked(NodeId node, SlotId slot, const proto::Effect& effect) {
  if (const auto* armed = std::get_if<port::ArmTimer>(&effect)) {
    forget(node, slot, port::TimerFired::kKind, armed->timer.value);
  }
  if (const auto* disarmed = std::get_if<port::DisarmTimer>(&effect)) {
    forget(node, slot, port::TimerFired::kKind, disarmed->timer.value);
  }
  if (const auto* freeze = std::get_if<port::FreezeCompute>(&effect)) {
    for (OpenAsk& ask : asks_) {
      if (ask.node == node && ask.kind == port::ComputeDone::kKind) ask.needs_others = freeze->frozen;
    }
  }
  if (const auto ask = std::visit(EndOf{node, slot}, effect)) asks_.push_back(*ask);
}

void OpenAsks::told(NodeId node, SlotId slot, const proto::Input& input) {
  if (!goes_on(input)) forget(node, slot, kind_of(input), std::visit(IdOf{}, input));
}

void OpenAsks::ended(NodeId node) {
  std::erase_if(asks_, [&](const OpenAsk& ask) { return ask.node == node; });
}

void OpenAsks::expect_exit(NodeId starter, NodeId node) {
  if (!expects_exit(node)) asks_.push_back({starter, std::nullopt, port::ProcessExited::kKind, node.value});
}

bool OpenAsks::expects_exit(NodeId node) const {
  return std::ranges::any_of(
      asks_, [&](const OpenAsk& ask) { return ask.kind == port::ProcessExited::kKind && ask.id == node.value; });
}

bool OpenAsks::all_need_others() const {
  return std::ranges::all_of(asks_, [](const OpenAsk& ask) { return ask.needs_others; });
}

void OpenAsks::forget(NodeId node, SlotId slot, KindId kind, std::uint64_t id) {
  const auto place = std::ranges::find_if(asks_, [&](const OpenAsk& ask) {
    return ask.node == node && (!ask.slot || *ask.slot == slot) && ask.kind == kind && ask.id == id;
  });
  if (place != asks_.end()) asks_.erase(place);
}

}  // namespace areal::test
