#include "engine/node/tiny_payload.h"

#include <algorithm>
#include <bit>
#include <span>

#include "engine/proto/member_groups.h"

namespace areal::node {
namespace {

constexpr std::size_t kIndexBytes = 4;
// Source: the reference's group check.
constexpr std::size_t kLivenessFloats = 100;

void put(std::vector<std::byte>& out, std::uint32_t word, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) out.push_back(static_cast<std::byte>(word >> (8 * i)));
}

// REQUIRES: bytes.size() >= size.
std::uint32_t take_word(std::span<const std::byte>& bytes, std::size_t size) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < size; ++i) word |= static_cast<std::uint32_t>(bytes[i]) << (8 * i);
  bytes = bytes.subspan(size);
  return word;
}

// The wire dtype of a batch: all ranks make the same passes.
DType wire_of(const RoomPlan& room, std::uint32_t transfer_rank, const port::PostBatch& batch) {
  const std::vector<proto::MemberPass>& passes = room.members->at(transfer_rank).passes;
  return batch.part < passes.size() ? passes[batch.part].wire : DType::kBool;
}

std::uint32_t elements_of(const delta::RemapBox& box) {
  std::uint64_t elements = 1;
  for (const delta::RemapDimension& dim : box.dims) elements *= dim.train.end - dim.train.start;
  return static_cast<std::uint32_t>(elements);
}

// Calls visit(op index, first element of the stream) for each operation of one wire dtype.
template <class Visit>
void each_op(const TinyStream& stream, DType wire, Visit&& visit) {
  std::uint32_t first = 0;
  for (std::size_t i = 0; i < stream.ops.size(); ++i) {
    if (stream.ops[i].wire == wire) visit(i, first);
    first += elements_of(stream.ops[i].box);
  }
}

void pack_dense(const TinyStream& stream, const PackedStream& packed, DType wire, std::vector<std::byte>& out) {
  each_op(stream, wire, [&](std::size_t op, std::uint32_t first) {
    const std::uint32_t count = elements_of(stream.ops[op].box);
    for (std::uint32_t i = first; i < first + count; ++i) put(out, packed.bits[i], size_of(wire));
  });
}

void pack_delta(const TinyStream& stream, const PackedUpdates& updates, DType wire, bool data,
                std::vector<std::byte>& out) {
  std::vector<std::uint32_t> starts{0};
  for (const std::uint32_t count : updates.counts) starts.push_back(starts.back() + count);
  each_op(stream, wire, [&](std::size_t op, std::uint32_t) {
    if (!data) put(out, updates.counts[op], kIndexBytes);
  });
  if (!data) return;
  // One run of indices, then one of values (spec/transfer.md 1.11).
  each_op(stream, wire, [&](std::size_t op, std::uint32_t) {
    for (std::uint32_t i = starts[op]; i < starts[op + 1]; ++i) {
      put(out, static_cast<std::uint32_t>(updates.indices[i]), kIndexBytes);
    }
  });
  each_op(stream, wire, [&](std::size_t op, std::uint32_t) {
    for (std::uint32_t i = starts[op]; i < starts[op + 1]; ++i) put(out, updates.bits[i], size_of(wire));
  });
}

// The kinds of parts that a reduction's group holds the copies of: both, where there is one set of copies.
std::vector<std::uint8_t> kinds_of(const RoomPlan& room, std::uint32_t train_rank, const port::PostBatch& batch) {
  const auto& places = room.reconstruct->ranks[train_rank].places;
  std::vector<std::uint8_t> kinds;
  for (std::uint8_t kind = 0; kind < places.size(); ++kind) {
    if (batch.group == proto::replica_group(proto::epoch_of_side(batch.group), places[kind].group))
      kinds.push_back(kind);
  }
  return kinds;
}

// REQUIRES: from.size() >= count.
template <class T>
std::vector<T> take_front(std::span<const T>& from, std::size_t count) {
  std::vector<T> front(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
  from = from.subspan(count);
  return front;
}

// Gives each kind its part of the sums back; false if they have another length.
bool take_sums(TinyDelta& delta, std::span<const std::uint8_t> kinds, std::uint32_t window,
               const BatchPayload& payload) {
  std::span<const float> corrections = payload.sums;
  std::span<const std::int64_t> statuses = payload.statuses;
  for (const std::uint8_t kind : kinds) {
    const TinyDelta::WindowSums own = delta.window_sums(window, kind);
    if (corrections.size() < own.corrections.size() || statuses.size() < own.statuses.size()) return false;
    const TinyDelta::WindowSums sums{take_front(corrections, own.corrections.size()),
                                     take_front(statuses, own.statuses.size())};
    if (!delta.take_sums(window, kind, sums)) return false;
  }
  return corrections.empty() && statuses.empty();
}

}  // namespace

BatchPayload liveness_payload(std::uint32_t rank, std::uint32_t world) {
  BatchPayload payload;
  std::vector<std::byte> message;
  const auto word = std::bit_cast<std::uint32_t>(static_cast<float>(rank));
  for (std::size_t i = 0; i < kLivenessFloats; ++i) put(message, word, sizeof(word));
  const std::vector<std::byte> room_for_one(message.size());
  if (world % 2 == 1) {
    if (world == 1) return payload;
    payload.sends.push_back({(rank + 1) % world, message});
    payload.receives.push_back({(rank + world - 1) % world, room_for_one});
  } else if (rank >= world / 2) {
    payload.sends.push_back({rank - world / 2, message});
  } else {
    payload.receives.push_back({rank + world / 2, room_for_one});
  }
  return payload;
}

// ---- Sender ----

BatchPayload TinySenderPayload::make(const RoomPlan& room, const TinyTrainRank& rank,
                                     const port::PostBatch& batch) const {
  BatchPayload payload;
  const std::uint32_t transfer_rank = rank.trainer().transfer_rank();
  const std::uint32_t train_rank = transfer_rank - room.cluster.infer_world();
  if (batch.kind == port::BatchKind::kReduce) {
    for (const std::uint8_t kind : kinds_of(room, train_rank, batch)) {
      const TinyDelta::WindowSums sums = rank.trainer().delta().window_sums(batch.part, kind);
      payload.sums.insert(payload.sums.end(), sums.corrections.begin(), sums.corrections.end());
      payload.statuses.insert(payload.statuses.end(), sums.statuses.begin(), sums.statuses.end());
    }
    return payload;
  }
  const DType wire = wire_of(room, transfer_rank, batch);
  const proto::RankPlan plan = room.tiny->plan->rank(transfer_rank);
  for (std::size_t i = 0; i < plan.peer_count(); ++i) {
    const auto number = static_cast<std::size_t>(&plan.list(i) - room.tiny->plan->lists.data());
    const TinyStream& stream = room.tiny->streams[number];
    PeerPayload peer{plan.list(i).recv, {}};
    const PackedStream& packed = rank.packed().streams[i];
    if (batch.round == port::Round::kDense) {
      pack_dense(stream, packed, wire, peer.bytes);
    } else {
      pack_delta(stream, packed.updates, wire, batch.round == port::Round::kData, peer.bytes);
    }
    if (!peer.bytes.empty()) payload.sends.push_back(std::move(peer));
  }
  return payload;
}

PayloadEnd TinySenderPayload::take(const RoomPlan& room, TinyTrainRank& rank, const port::PostBatch& batch,
                                   const BatchPayload& payload) {
  PayloadEnd end;
  const std::uint32_t transfer_rank = rank.trainer().transfer_rank();
  const std::uint32_t train_rank = transfer_rank - room.cluster.infer_world();
  if (batch.kind == port::BatchKind::kReduce) {
    end.fits = take_sums(rank.trainer().delta(), kinds_of(room, train_rank, batch), batch.part, payload);
  } else if (batch.round == port::Round::kCounts) {
    const auto wire = static_cast<std::size_t>(wire_of(room, transfer_rank, batch));
    for (const PackedStream& stream : rank.packed().streams) {
      end.value += stream.updates.by_dtype[wire];
      end.count += stream.updates.by_dtype[wire] > 0 ? 1 : 0;
    }
  }
  return end;
}

// ---- Receiver ----

void TinyReceiverPayload::begin(const RoomPlan& room, const TinyEngineRank& rank) {
  const proto::RankPlan plan = room.tiny->plan->rank(rank.replica().transfer_rank());
  for (std::size_t i = 0; i < plan.peer_count(); ++i) {
    Stream& stream = streams_.emplace_back();
    stream.stream = static_cast<std::uint32_t>(&plan.list(i) - room.tiny->plan->lists.data());
    const TinyStream& shape = room.tiny->streams[stream.stream];
    stream.bits.resize(shape.recv.size());
    stream.indices.resize(shape.ops.size());
    stream.values.resize(shape.ops.size());
    stream.counts.resize(shape.ops.size(), 0);
  }
}

BatchPayload TinyReceiverPayload::make(const RoomPlan& room, const TinyEngineRank& rank, const port::PostBatch& batch) {
  if (streams_.empty()) begin(room, rank);
  BatchPayload payload;
  const DType wire = wire_of(room, rank.replica().transfer_rank(), batch);
  for (const Stream& stream : streams_) {
    const TinyStream& shape = room.tiny->streams[stream.stream];
    std::size_t bytes = 0;
    each_op(shape, wire, [&](std::size_t op, std::uint32_t) {
      if (batch.round == port::Round::kDense) bytes += elements_of(shape.ops[op].box) * size_of(wire);
      if (batch.round == port::Round::kCounts) bytes += kIndexBytes;
      if (batch.round == port::Round::kData) bytes += stream.counts[op] * (kIndexBytes + size_of(wire));
    });
    if (bytes > 0) payload.receives.push_back({shape.sender, std::vector<std::byte>(bytes)});
  }
  return payload;
}

PayloadEnd TinyReceiverPayload::take(const RoomPlan& room, TinyEngineRank& rank, const port::PostBatch& batch,
                                     const BatchPayload& payload) {
  PayloadEnd end;
  const DType wire = wire_of(room, rank.replica().transfer_rank(), batch);
  for (const PeerPayload& peer : payload.receives) {
    const auto stream = std::ranges::find_if(
        streams_, [&](const Stream& one) { return room.tiny->streams[one.stream].sender == peer.rank; });
    if (stream == streams_.end()) return {false, 0, 0};
    const TinyStream& shape = room.tiny->streams[stream->stream];
    std::span<const std::byte> bytes = peer.bytes;
    rank.count_landed(batch.round == port::Round::kCounts ? 0 : bytes.size());
    std::uint64_t updates = 0;
    each_op(shape, wire, [&](std::size_t op, std::uint32_t first) {
      const std::uint32_t elements = elements_of(shape.ops[op].box);
      if (batch.round == port::Round::kDense) {
        for (std::uint32_t i = first; i < first + elements; ++i) stream->bits[i] = take_word(bytes, size_of(wire));
      } else if (batch.round == port::Round::kCounts) {
        const std::uint32_t count = take_word(bytes, kIndexBytes);
        end.fits = end.fits && count <= elements;
        stream->counts[op] = std::min(count, elements);
        updates += stream->counts[op];
      } else {
        for (std::uint32_t i = 0; i < stream->counts[op]; ++i) {
          stream->indices[op].push_back(static_cast<std::int32_t>(take_word(bytes, kIndexBytes)));
        }
      }
    });
    if (batch.round == port::Round::kData) {
      each_op(shape, wire, [&](std::size_t op, std::uint32_t) {
        for (std::uint32_t i = 0; i < stream->counts[op]; ++i) {
          stream->values[op].push_back(take_word(bytes, size_of(wire)));
        }
      });
    }
    end.value += updates;
    end.count += updates > 0 ? 1 : 0;
  }
  const bool last = batch.part + 1 == room.members->at(rank.replica().transfer_rank()).passes.size();
  if (last && batch.round != port::Round::kCounts) {
    end.fits = land(room, rank, batch.round == port::Round::kData) && end.fits;
  }
  return end;
}

bool TinyReceiverPayload::land(const RoomPlan& room, TinyEngineRank& rank, bool is_delta) {
  bool fits = true;
  for (const Stream& stream : streams_) {
    const TinyStream& shape = room.tiny->streams[stream.stream];
    if (!is_delta) {
      fits = rank.replica().land(shape.sender, stream.bits) && fits;
      continue;
    }
    PackedUpdates updates;
    updates.counts = stream.counts;
    for (std::size_t op = 0; op < shape.ops.size(); ++op) {
      updates.indices.insert(updates.indices.end(), stream.indices[op].begin(), stream.indices[op].end());
      updates.bits.insert(updates.bits.end(), stream.values[op].begin(), stream.values[op].end());
    }
    fits = rank.replica().land(shape.sender, updates) && fits;
  }
  streams_.clear();
  return fits;
}

}  // namespace areal::node
