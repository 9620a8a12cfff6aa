#include "engine/proto/caller.h"

namespace areal::proto {

RequestId Caller::ask_record(NodeId to, SlotId slot, const Record& body, Outbox& out) {
  const RequestId id{++next_};
  AREAL_CHECK(pending_.insert(id, PendingRequest{to, slot, body, 1}));
  out.push(port::Send{to, slot, port::MessageKind::kRequest, id, body});
  out.push(port::ArmTimer{timer_of(id), options_.timeout});
  return id;
}

std::optional<PendingRequest> Caller::answered(const port::MessageIn& message, Outbox& out) {
  if (message.kind != port::MessageKind::kReply) return std::nullopt;
  const PendingRequest* found = pending_.find(message.request);
  if (found == nullptr || found->to != message.from) return std::nullopt;
  const PendingRequest request = *found;
  pending_.erase(message.request);
  out.push(port::DisarmTimer{timer_of(message.request)});
  return request;
}

Caller::FiredResult Caller::on_timer(const port::TimerFired& fired, Outbox& out) {
  const std::uint64_t low = fired.timer.value - options_.timer_base;
  if (fired.timer.value < options_.timer_base || low > 0xFFFFFFFF) return {};
  const RequestId id{(next_ & ~std::uint64_t{0xFFFFFFFF}) | low};
  const PendingRequest* found = pending_.find(id);
  if (found == nullptr) return {};
  const PendingRequest request = *found;
  if (request.tries >= options_.tries) {
    pending_.erase(id);
    return {Fired::kGaveUp, request};
  }
  pending_.edit(id, [](PendingRequest& pending) { ++pending.tries; });
  out.push(port::Send{request.to, request.slot, port::MessageKind::kRequest, id, request.body});
  out.push(port::ArmTimer{timer_of(id), options_.timeout});
  return {Fired::kAskedAgain, request};
}

}  // namespace areal::proto
