// The bytes of group batches between ranks of the small live model, as real processes exchange them.
//
// A sender's and a receiver's side of the same batch agree about every peer and size, because both follow the live
// plan; only the data round of a delta has sizes that the counts before it said. Values are little-endian in the wire
// dtype. Values; one loop owns them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/node/tiny_rank.h"
#include "engine/port/types.h"

namespace areal::node {

struct PeerPayload {
  std::uint32_t rank = 0;  // In the batch's group.
  std::vector<std::byte> bytes;
};

// What one member puts into a batch and wants from it. `receives` have their sizes and no content yet.
struct BatchPayload {
  std::vector<PeerPayload> sends;
  std::vector<PeerPayload> receives;
  std::vector<float> sums;
  std::vector<std::int64_t> statuses;
};

// What a batch's end says besides its outcome.
struct PayloadEnd {
  bool fits = true;  // False: bytes or sums of other sizes than the plan says.
  std::uint64_t value = 0;
  std::uint64_t count = 0;
};

// The message of the liveness exchange of a payload group (spec/transfer.md 4.3): 100 floats, the sender's rank.
BatchPayload liveness_payload(std::uint32_t rank, std::uint32_t world);

class TinySenderPayload {
 public:
  // REQUIRES: a send batch of version > 0, or a reduction of a replica group of `plan`.
  BatchPayload make(const RoomPlan& room, const TinyTrainRank& rank, const port::PostBatch& batch) const;
  PayloadEnd take(const RoomPlan& room, TinyTrainRank& rank, const port::PostBatch& batch, const BatchPayload& payload);
};

class TinyReceiverPayload {
 public:
  // REQUIRES: a receive batch of version > 0.
  BatchPayload make(const RoomPlan& room, const TinyEngineRank& rank, const port::PostBatch& batch);
  PayloadEnd take(const RoomPlan& room, TinyEngineRank& rank, const port::PostBatch& batch,
                  const BatchPayload& payload);
  // Staging is new.
  void clear() { streams_.clear(); }

 private:
  // One sender's part of the present transfer, until its last wire dtype has come.
  struct Stream {
    std::uint32_t stream = 0;         // Index into TinyShape::streams.
    std::vector<std::uint32_t> bits;  // Of a dense transfer, in wire order.
    // Of a delta, by operation.
    std::vector<std::vector<std::int32_t>> indices;
    std::vector<std::vector<std::uint32_t>> values;
    std::vector<std::uint32_t> counts;
  };
  std::vector<Stream> streams_;  // As the rank's plan lists its peers; empty before the first batch.

  void begin(const RoomPlan& room, const TinyEngineRank& rank);
  bool land(const RoomPlan& room, TinyEngineRank& rank, bool is_delta);
};

}  // namespace areal::node
