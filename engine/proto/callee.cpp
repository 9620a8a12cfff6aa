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
  if (key.request.value % kWindow == 0) {  // Once a window, forget the one before the last.
    const RequestId floor{key.request.value - kWindow};
    seen_.erase_if([&](const RequestKey& old, const RememberedReply& reply) {
      return reply.body.kind != 0 && old.from == key.from && old.slot == key.slot && old.request <= floor;
    });
    if (!forgotten_.edit(asker, [&](RequestId& value) { value = floor; })) forgotten_.insert(asker, floor);
  }
  return seen_.insert(key, RememberedReply{});
}

void Callee::reply_record(const RequestKey& key, const Record& body, Outbox& out) {
  if (!seen_.edit(key, [&](RememberedReply& reply) { reply.body = body; })) return;
  out.push(port::Send{key.from, key.slot, port::MessageKind::kReply, key.request, body});
}

}  // namespace areal::proto
