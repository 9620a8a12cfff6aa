#include "engine/proto/callee.h"

namespace areal::proto {

bool Callee::admit(const port::MessageIn& message, Outbox& out) {
  if (message.kind != port::MessageKind::kRequest) return false;
  const RequestKey key = key_of(message);
  if (const RememberedReply* seen = seen_.find(key); seen != nullptr) {
    if (repeats_(*seen)) return true;
    if (seen->body.kind != 0) {
      out.push(port::Send{key.from, key.slot, port::MessageKind::kReply, key.request, seen->body});
    }
    return false;
  }
  const Asker asker{key.from, key.slot};
  if (const RequestId* floor = forgotten_.find(asker); floor != nullptr && key.request <= *floor) return false;
  if (key.request.value % kWindow == 0 && key.request.value >= kWindow) {
    forget_up_to({key.request.value - kWindow}, asker);  // Once a window, forget the one before the last.
  }
  return seen_.insert(key, RememberedReply{});
}

// What is forgotten must be known to be, or it would be acted on again.
void Callee::forget_up_to(RequestId floor, const Asker& asker) {
  const bool is_known = forgotten_.edit(asker, [&](RequestId& value) { value = floor; });
  if (!is_known && !forgotten_.insert(asker, floor)) return;
  seen_.erase_if([&](const RequestKey& old, const RememberedReply& reply) {
    return reply.body.kind != 0 && old.from == asker.node && old.slot == asker.slot && old.request <= floor;
  });
}

void Callee::reply_record(const RequestKey& key, const Record& body, Outbox& out) {
  if (!seen_.edit(key, [&](RememberedReply& reply) { reply.body = body; })) return;
  out.push(port::Send{key.from, key.slot, port::MessageKind::kReply, key.request, body});
}

}  // namespace areal::proto
