// Keeps the shards that rollout produced until their batch is drained.
//
// Content of an id never changes: a second put of other content is refused and not answered, an equal one is answered
// again. Dropping a shard that is not here counts 0, which is success, so that a drain may be repeated and a store that
// restarted empty does not fail one (spec/transfer.md 9.3, 9.8).
#pragma once
#include <cstdint>
#include <string_view>

#include "engine/base/table.h"
#include "engine/proto/callee.h"
#include "engine/proto/input.h"
#include "engine/proto/messages.h"
#include "engine/proto/waits.h"

namespace areal::proto {

struct TensorStoreOptions {
  std::size_t shard_limit = 65'536;  // A put beyond it is refused.
};

struct StoredShard {
  std::uint64_t bytes = 0;
  Digest128 digest;
  TrainBatchId batch;  // That a consumer last fetched it for; 0 before that.
  AREAL_FIELDS(bytes, digest, batch)
};

class TensorStore {
 public:
  static constexpr std::string_view kName = "tensor_store";

  explicit TensorStore(TensorStoreOptions options = {}) : shards_(options.shard_limit) {}

  void step(const Input& input, Outbox& out);
  void list_waits(WaitList& /*waits*/) const {}  // It only answers.

  [[nodiscard]] const Table<ShardId, StoredShard>& shards() const { return shards_; }

  AREAL_FIELDS(shards_, callee_, drain_callee_)

 private:
  void on(const port::MessageIn& message, const PutShard& put, Outbox& out);
  void on(const port::MessageIn& message, const FetchShard& fetch, Outbox& out);
  void on(const port::MessageIn& message, const DropShard& drop, Outbox& out);
  [[nodiscard]] std::uint64_t count_of(TrainBatchId batch) const;
  // Protocols of one node number their requests on their own.
  Callee& callee_of(const port::MessageIn& message);

  Table<ShardId, StoredShard> shards_;
  Callee callee_;
  Callee drain_callee_;
};

}  // namespace areal::proto
