// Compares what the world's memory holds, element by element.
#include "sim/world/shadow.h"

#include <fmt/format.h>

namespace areal::sim {
namespace {

std::string name_of_element(const node::TinyShape& shape, const node::TinyHolding& holding, std::uint32_t local) {
  for (const node::TinyPart& part : holding.parts) {
    if (local < part.first || local >= part.first + part.count) continue;
    return fmt::format("element {} of {}", local - part.first,
                       shape.model.name_of(shape.model.parameters[part.tensor]));
  }
  return fmt::format("element {}", local);
}

}  // namespace

void ShadowScope::on_event(const port::TraceEvent& event) {
  const Record& record = subject(event);
  if (record.kind == port::UpdateStarted::kKind) {
    renewed_.clear();
    unrecorded_.clear();
  }
  if (const auto gone = incarnations_.renewed(event)) renewed_.push_back(*gone);
  if (record.kind != port::ComputeDone::kKind) return;
  const auto done = from_record<port::ComputeDone>(record);
  const bool failed = done.what == port::ComputeKind::kMarkSynced && done.outcome != port::Outcome::kOk;
  if (failed) unrecorded_.push_back(event.node);
  // It went back to other weights while the end of the update was still being told.
  const bool restored = done.what == port::ComputeKind::kLoadCheckpoint || done.what == port::ComputeKind::kLoadModel;
  if (restored) renewed_.push_back(event.node);
}

std::optional<ShadowDifference> shadow_difference(const World& world, const ShadowScope& scope) {
  const Room& room = world.room();
  const node::TinyShape& shape = *room.tiny;
  for (const node::TinyStream& stream : shape.streams) {
    const std::uint32_t train_rank = stream.sender - shape.world().infer_world;
    const NodeId sender = room.cluster.trainers[train_rank];
    const NodeId receiver = room.cluster.engine_ranks[stream.receiver];
    if (scope.is_renewed(sender) || scope.is_renewed(receiver)) continue;
    const auto sent = world.trainer(train_rank).wire();
    const auto record = scope.is_unrecorded(sender) ? std::span<const std::uint32_t>{} : world.synced(train_rank);
    const auto held = world.replica(stream.receiver).live();
    for (std::size_t i = 0; i < stream.send.size(); ++i) {
      const std::uint32_t local = stream.send[i];
      const std::uint32_t bits = held[stream.recv[i]];
      const bool exact = bits == sent[local];
      if (exact && (record.empty() || bits == record[local])) continue;
      return ShadowDifference{
          exact ? sender : receiver, exact,
          fmt::format("{} is {:#x} at {} and {:#x} {} {}", name_of_element(shape, shape.trainers[train_rank], local),
                      bits, room.node(receiver).name, exact ? record[local] : sent[local],
                      exact ? "on record of" : "at", room.node(sender).name)};
    }
  }
  return std::nullopt;
}

}  // namespace areal::sim
