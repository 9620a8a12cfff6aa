#include "engine/proto/tensor_store.h"

#include <algorithm>

#include "engine/proto/cluster.h"

namespace areal::proto {

void TensorStore::step(const Input& input, Outbox& out) {
  const auto* message = std::get_if<port::MessageIn>(&input);
  if (message == nullptr || !callee_of(*message).admit(*message, out)) return;
  const bool known = dispatch_record<PutShard, FetchShard, DropShard>(
      message->body, [&](const auto& body) { on(*message, body, out); });
  if (!known) out.note(port::Refused{message->body.kind, Refusal::kUnknown, message->from, 0});
}

void TensorStore::on(const port::MessageIn& message, const PutShard& put, Outbox& out) {
  if (const StoredShard* known = shards_.find(put.shard); known != nullptr) {
    if (known->bytes != put.bytes || known->digest != put.digest) {
      out.note(port::Refused{PutShard::kKind, Refusal::kBusy, message.from, put.shard.value});
      return;
    }
  } else if (shards_.insert(put.shard, StoredShard{put.bytes, put.digest, {}})) {
    out.note(port::ShardStored{put.shard, put.bytes});
  } else {
    out.note(port::Refused{PutShard::kKind, Refusal::kBusy, message.from, put.shard.value});
    return;
  }
  callee_of(message).reply(Callee::key_of(message), Ack{}, out);
}

void TensorStore::on(const port::MessageIn& message, const FetchShard& fetch, Outbox& out) {
  ShardData data{fetch.shard, Outcome::kRefused, 0, {}};
  if (const StoredShard* known = shards_.find(fetch.shard); known != nullptr) {
    data = {fetch.shard, Outcome::kOk, known->bytes, known->digest};
    shards_.edit(fetch.shard, [&](StoredShard& shard) { shard.batch = fetch.batch; });
  } else {
    out.note(port::Refused{FetchShard::kKind, Refusal::kUnknown, message.from, fetch.shard.value});
  }
  callee_of(message).reply(Callee::key_of(message), data, out);
}

void TensorStore::on(const port::MessageIn& message, const DropShard& drop, Outbox& out) {
  const std::uint64_t count = shards_.erase(drop.shard) ? 1 : 0;
  out.note(port::ShardsDropped{drop.batch, count, count_of(drop.batch)});
  callee_of(message).reply(Callee::key_of(message), Dropped{drop.batch, count}, out);
}

std::uint64_t TensorStore::count_of(TrainBatchId batch) const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(shards_, [&](const auto& entry) { return entry.value.batch == batch; }));
}

Callee& TensorStore::callee_of(const port::MessageIn& message) {
  return message.from_slot == kDrainSlot ? drain_callee_ : callee_;
}

}  // namespace areal::proto
