#include "bench/core_bench.h"

#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "engine/base/record.h"
#include "engine/base/rng.h"
#include "engine/base/state.h"
#include "engine/base/table.h"

namespace areal {
namespace {

enum class Phase : std::uint8_t { kIdle, kMoving, kApplied };
constexpr std::array<std::string_view, 3> enum_names(Phase /*unused*/) { return {"idle", "moving", "applied"}; }

struct BatchDone {
  NodeId node;
  GroupId group;
  BatchId batch;
  Phase phase = Phase::kIdle;
  Version version = 0;
  Attempt attempt = 0;
  Duration took;
  Digest128 payload;
  AREAL_RECORD(0x7F01, "bench_batch_done", node, group, batch, phase, version, attempt, took, payload)
};

struct Peer {
  Phase phase = Phase::kIdle;
  Version version = 0;
  Instant last_seen;
  AREAL_FIELDS(phase, version, last_seen)
};

// As large as a gateway's state: a fixed block and one table.
struct Protocol {
  Phase phase = Phase::kMoving;
  Version version = 7;
  Epoch epoch = 2;
  std::array<std::uint64_t, 8> counters{};
  Table<NodeId, Peer> peers{4096};
  AREAL_FIELDS(phase, version, epoch, counters, peers)
};

BatchDone make_record(std::uint64_t i) {
  return {.node = {i & 15},
          .group = {3},
          .batch = {i},
          .phase = static_cast<Phase>(i % 3),
          .version = i / 16,
          .attempt = 1,
          .took = {static_cast<std::int64_t>(i * 17)},
          .payload = {.high = mix_words(i, 1), .low = mix_words(i, 2)}};
}

Protocol make_protocol(std::uint64_t peers) {
  Protocol protocol;
  for (std::uint64_t i = 1; i <= peers; ++i) {
    AREAL_CHECK(protocol.peers.insert(NodeId{i}, Peer{.version = i, .last_seen = {static_cast<std::int64_t>(i)}}));
  }
  return protocol;
}

// A record made, and read back: what an input costs between the queue and its handler.
std::uint64_t record_round_trip(std::uint64_t i) {
  const Record record = to_record(make_record(i));
  const auto back = from_record<BatchDone>(record);
  return back.batch.value + back.payload.low + record.size;
}

void edit_peer(Protocol& protocol, std::uint64_t i) {
  const NodeId node{1 + i % protocol.peers.size()};
  const bool found = protocol.peers.edit(node, [i](Peer& peer) {
    peer.version += 1;
    peer.last_seen.ns = static_cast<std::int64_t>(i);
  });
  AREAL_CHECK(found);
}

std::vector<std::uint64_t> make_words(std::size_t count) {
  Rng rng(1);
  std::vector<std::uint64_t> words(count);
  for (std::uint64_t& word : words) word = rng.draw_u64();
  return words;
}

// ---- What is timed ----

void bench_record_round_trip(benchmark::State& state) {
  std::uint64_t i = 0;
  while (state.KeepRunning()) benchmark::DoNotOptimize(record_round_trip(++i));
  state.SetItemsProcessed(state.iterations());
}

void bench_record_digest(benchmark::State& state) {
  const Record record = to_record(make_record(5));
  while (state.KeepRunning()) benchmark::DoNotOptimize(hash_words(record.view(), record.kind));
  state.SetItemsProcessed(state.iterations());
}

void bench_table_edit(benchmark::State& state) {
  Protocol protocol = make_protocol(static_cast<std::uint64_t>(state.range(0)));
  std::uint64_t i = 0;
  while (state.KeepRunning()) edit_peer(protocol, ++i);
  AREAL_CHECK(protocol.peers.sum() == protocol.peers.recomputed_sum());
  state.SetItemsProcessed(state.iterations());
}

// Must not grow with the table: only its running sum is hashed.
void bench_state_digest(benchmark::State& state) {
  const Protocol protocol = make_protocol(static_cast<std::uint64_t>(state.range(0)));
  while (state.KeepRunning()) benchmark::DoNotOptimize(state_digest(protocol));
  state.SetItemsProcessed(state.iterations());
}

void bench_hash_words(benchmark::State& state) {
  const std::vector<std::uint64_t> words = make_words(static_cast<std::size_t>(state.range(0)));
  while (state.KeepRunning()) benchmark::DoNotOptimize(hash_words(words));
  state.SetBytesProcessed(state.iterations() * state.range(0) * 8);
}

BENCHMARK(bench_record_round_trip);
BENCHMARK(bench_record_digest);
BENCHMARK(bench_table_edit)->Arg(16)->Arg(512)->Arg(4096);
BENCHMARK(bench_state_digest)->Arg(16)->Arg(512)->Arg(4096);
BENCHMARK(bench_hash_words)->Arg(2)->Arg(14)->Arg(128)->Arg(8192);

}  // namespace

Digest128 bench::core_digest() {
  std::vector<std::uint64_t> results;
  results.reserve(1000);
  for (std::uint64_t i = 0; i < 1000; ++i) results.push_back(record_round_trip(i));
  Digest128 chain = hash_words(results);
  Protocol protocol = make_protocol(64);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    edit_peer(protocol, i);
    chain = chain_digest(chain, state_digest(protocol));
  }
  return chain_digest(chain, hash_words(make_words(8192)));
}

}  // namespace areal
