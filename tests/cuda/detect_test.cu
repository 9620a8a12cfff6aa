// The detector on a device against the rule on the host, bit by bit: all strata, sizes and alignments.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "engine/delta/cuda/detect.h"
#include "tests/cuda/device_array.h"
#include "tests/cuda/expect.h"
#include "tests/cuda/reference.cuh"
#include "tests/cuda/steps.h"
#include "tests/cuda/strata.h"

namespace {

using namespace areal::delta;        // NOLINT(google-build-using-namespace): the subjects of this file
using namespace areal::delta::cuda;  // NOLINT(google-build-using-namespace)
using areal::tests::DeviceArray;
using areal::tests::must;
using areal::tests::on_device;
using areal::tests::Stratum;

// Optimizer shards that lie one after the other in three flat arrays, none of them aligned like another.
struct Shards {
  std::vector<std::uint64_t> sizes{0, 1, 2, 3, 5, 4095, 4096, 4097, 0, 0, 2048, 63, 8192, 131072 + 17, 300000, 7, 0};
  std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  std::vector<float> weights = std::vector<float>(total + 1);
  std::vector<float> exp_avg = std::vector<float>(total + 2);
  std::vector<float> exp_avg_sq = std::vector<float>(total + 3);

  // Of every `one_in` elements one is of a stratum, and the others stand still and are not marked.
  void fill(const ProvenStep& step, std::uint64_t seed, std::uint64_t one_in = 1) {
    const ProvenScalars scalars = proven_scalars(step);
    areal::tests::in_threads(total, [&](std::uint64_t first, std::uint64_t end) {
      for (std::uint64_t i = first; i < end; ++i) {
        const auto stratum = static_cast<Stratum>(i % 7 % static_cast<std::uint64_t>(Stratum::kCount));
        const areal::tests::State state = areal::mix_words(seed, i) % one_in == 0
                                              ? areal::tests::state_of(stratum, seed, i, scalars)
                                              : areal::tests::State{1.0F, 0.0F, 1e-8F};
        weights[i + 1] = state.weight;
        exp_avg[i + 2] = state.exp_avg;
        exp_avg_sq[i + 3] = state.exp_avg_sq;
      }
    });
  }
};

struct Changes {
  std::vector<std::uint64_t> offsets{0};
  std::vector<std::int64_t> indices;
  std::vector<std::uint16_t> values;
};

Changes expected_changes(const Shards& shards, const ChangeRule& rule) {
  std::vector<std::uint8_t> marks(shards.total);
  areal::tests::in_threads(shards.total, [&](std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t i = first; i < end; ++i) {
      const float weight = shards.weights[i + 1];
      marks[i] = rule_marks(rule, weight, shards.exp_avg[i + 2], shards.exp_avg_sq[i + 3], to_bf16(weight)) ? 1 : 0;
    }
  });
  Changes changes;
  std::uint64_t at = 0;
  for (const std::uint64_t size : shards.sizes) {
    for (std::uint64_t i = 0; i < size; ++i, ++at) {
      if (marks[at] == 0) continue;
      changes.indices.push_back(static_cast<std::int64_t>(i));
      changes.values.push_back(to_bf16(shards.weights[at + 1]));
    }
    changes.offsets.push_back(changes.indices.size());
  }
  return changes;
}

struct DeviceLists {
  explicit DeviceLists(std::uint64_t room, std::size_t tensors)
      : narrow(room), wide(room), values(room), offsets(tensors + 1) {
    narrow.fill(0xCD), wide.fill(0xCD), values.fill(0xCD), offsets.fill(0xCD);
  }
  DeviceArray<std::int32_t> narrow;
  DeviceArray<std::int64_t> wide;
  DeviceArray<std::uint16_t> values;
  DeviceArray<std::uint64_t> offsets;

  ChangeOutput output(bool is_wide, std::uint64_t capacity) const {
    return {is_wide ? nullptr : narrow.data(), is_wide ? wide.data() : nullptr, values.data(), capacity,
            offsets.data()};
  }
  [[nodiscard]] std::vector<std::int64_t> indices(bool is_wide, std::uint64_t count) const {
    if (is_wide) return wide.host(0, count);
    const std::vector<std::int32_t> found = narrow.host(0, count);
    return {found.begin(), found.end()};
  }
};

// Prints where two lists differ first, if they do.
template <class T>
bool is_same(const char* what, const std::vector<T>& expected, const std::vector<T>& found) {
  const auto [a, b] = std::mismatch(expected.begin(), expected.end(), found.begin(), found.end());
  if (a == expected.end() && b == found.end()) return true;
  const auto at = static_cast<long long>(a - expected.begin());
  std::printf("%s: %zu expected, %zu found; at %lld: %lld, not %lld\n", what, expected.size(), found.size(), at,
              b == found.end() ? -1LL : static_cast<long long>(*b),
              a == expected.end() ? -1LL : static_cast<long long>(*a));
  return false;
}

bool is_equal(const Changes& expected, const DeviceLists& lists, bool is_wide) {
  const std::uint64_t count = expected.indices.size();
  return is_same("offsets", expected.offsets, lists.offsets.host()) &&
         is_same("indices", expected.indices, lists.indices(is_wide, count)) &&
         is_same("values", expected.values, lists.values.host(0, count));
}

// On the device, with the three arrays at their odd places.
struct DeviceShards {
  explicit DeviceShards(const Shards& shards)
      : weights(on_device(shards.weights)),
        exp_avg(on_device(shards.exp_avg)),
        exp_avg_sq(on_device(shards.exp_avg_sq)) {
    std::uint64_t at = 0;
    for (const std::uint64_t size : shards.sizes) {
      tensors.push_back({weights.data() + 1 + at, exp_avg.data() + 2 + at, exp_avg_sq.data() + 3 + at, size, 0});
      at += size;
    }
  }
  DeviceArray<float> weights;
  DeviceArray<float> exp_avg;
  DeviceArray<float> exp_avg_sq;
  std::vector<OptimizerTensor> tensors;
};

void finds_what_the_rule_marks(std::size_t steps) {
  Shards shards;
  std::uint64_t seed = 1;
  std::vector<ProvenStep> tested = areal::tests::steps_to_test();
  tested.resize(std::min(steps, tested.size()));
  for (const ProvenStep& step : tested) {
    shards.fill(step, seed += 100);
    const DeviceShards there(shards);
    for (const ChangeRule& rule : {proven_rule(step), reference_rule(step), reference_rule(step, 0.0F)}) {
      const Changes expected = expected_changes(shards, rule);
      const DeviceArray<ChangeRule> rules(std::span(&rule, 1));
      for (const bool is_wide : {false, true}) {
        const DeviceLists lists(shards.total + 1, shards.sizes.size());
        const DetectTable table = must(DetectTable::make(std::span<const OptimizerTensor>(there.tensors)));
        for (int repeat = 0; repeat < 3; ++repeat) {  // The same table again and again: nothing is left over.
          must(detect_changes(table, rules.data(), 1, lists.output(is_wide, shards.total), nullptr));
        }
        areal::tests::wait_for_device();
        AREAL_EXPECT(is_equal(expected, lists, is_wide));
      }
    }
  }
}

// Few changes of every kind, so that their values come from the first pass: infinities and NaN among them.
void values_of_few_changes() {
  Shards shards;
  const ProvenStep step = areal::tests::steps_to_test()[0];
  const ChangeRule rule = proven_rule(step);
  const DeviceArray<ChangeRule> rules(std::span(&rule, 1));
  for (const std::uint64_t seed : {std::uint64_t{91}, std::uint64_t{92}}) {
    shards.fill(step, seed, 20);
    const DeviceShards there(shards);
    const Changes expected = expected_changes(shards, rule);
    AREAL_EXPECT(expected.indices.size() < shards.total / 15);
    AREAL_EXPECT(std::count(expected.values.begin(), expected.values.end(), kCanonicalNan) > 0);
    const DeviceLists lists(shards.total, shards.sizes.size());
    const DetectTable table = must(DetectTable::make(std::span<const OptimizerTensor>(there.tensors)));
    must(detect_changes(table, rules.data(), 1, lists.output(false, shards.total), nullptr));
    areal::tests::wait_for_device();
    AREAL_EXPECT(is_equal(expected, lists, false));
  }
}

// Two parameter groups: each tensor by its own rule.
void tensors_have_their_own_rules() {
  const auto steps = areal::tests::steps_to_test();
  Shards shards;
  shards.fill(steps[0], 5);
  DeviceShards there(shards);
  const std::vector<ChangeRule> both{proven_rule(steps[0]), proven_rule(steps[3])};
  for (std::size_t t = 0; t < there.tensors.size(); ++t) there.tensors[t].rule = t % 2;
  const DeviceArray<ChangeRule> rules = on_device(both);
  const DeviceLists lists(shards.total, shards.sizes.size());
  const DetectTable table = must(DetectTable::make(std::span<const OptimizerTensor>(there.tensors)));
  AREAL_EXPECT(!detect_changes(table, rules.data(), 1, lists.output(false, shards.total), nullptr));
  must(detect_changes(table, rules.data(), 2, lists.output(false, shards.total), nullptr));
  areal::tests::wait_for_device();
  const std::vector<std::uint64_t> offsets = lists.offsets.host();
  for (std::size_t t = 0; t < there.tensors.size(); ++t) {
    const Changes expected = expected_changes(shards, both[t % 2]);
    AREAL_EXPECT(offsets[t + 1] - offsets[t] == expected.offsets[t + 1] - expected.offsets[t]);
  }
}

void what_does_not_fit_is_counted_and_not_written() {
  Shards shards;
  const ProvenStep step = areal::tests::steps_to_test()[3];
  shards.fill(step, 9);
  const DeviceShards there(shards);
  const ChangeRule rule = proven_rule(step);
  const Changes expected = expected_changes(shards, rule);
  const DeviceArray<ChangeRule> rules(std::span(&rule, 1));
  const DetectTable table = must(DetectTable::make(std::span<const OptimizerTensor>(there.tensors)));
  for (const std::uint64_t capacity :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000}, expected.indices.size() - 1}) {
    const DeviceLists lists(shards.total, shards.sizes.size());
    must(detect_changes(table, rules.data(), 1, lists.output(false, capacity), nullptr));
    areal::tests::wait_for_device();
    AREAL_EXPECT(lists.offsets.host() == expected.offsets);
    const std::vector<std::uint16_t> values = lists.values.host();
    AREAL_EXPECT(
        std::equal(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(capacity), expected.values.begin()));
    AREAL_EXPECT(std::count(values.begin() + static_cast<std::ptrdiff_t>(capacity), values.end(), 0xCDCD) ==
                 static_cast<std::ptrdiff_t>(values.size() - capacity));
  }
}

void nothing_to_look_at_gives_nothing() {
  const ChangeRule rule = proven_rule(areal::tests::steps_to_test()[0]);
  const DeviceArray<ChangeRule> rules(std::span(&rule, 1));
  for (const std::size_t tensors : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    const std::vector<OptimizerTensor> empty(tensors);
    const DeviceLists lists(1, tensors);
    const DetectTable table = must(DetectTable::make(std::span<const OptimizerTensor>(empty)));
    must(detect_changes(table, rules.data(), 1, lists.output(false, 1), nullptr));
    areal::tests::wait_for_device();
    AREAL_EXPECT(lists.offsets.host() == std::vector<std::uint64_t>(tensors + 1, 0));
  }
}

// Tiles with none, some, as many changes as fit into a tile's notes, one more, and all; the last tile is not full.
void tiles_of_every_crowd() {
  constexpr std::uint64_t kTile = 2048;
  const std::vector<std::uint64_t> crowds{0, 1, 8, 255, 256, 257, 1024, kTile, 0, 256, kTile, 256};
  const std::uint64_t total = crowds.size() * kTile - 1000;
  std::vector<std::uint16_t> sent(total);
  for (std::uint64_t i = 0; i < total; ++i) sent[i] = static_cast<std::uint16_t>(areal::mix_words(78, i));
  std::vector<std::uint16_t> now = sent;
  Changes expected;
  for (std::uint64_t tile = 0; tile < crowds.size(); ++tile) {
    const std::uint64_t size = std::min(kTile, total - tile * kTile);
    for (std::uint64_t i = 0; i < size; ++i) {
      // Spread over the tile, so that every crowd has the first element and none of two is the same.
      if (i * crowds[tile] % size >= crowds[tile]) continue;
      now[tile * kTile + i] ^= 1;
      expected.indices.push_back(static_cast<std::int64_t>(tile * kTile + i));
      expected.values.push_back(now[tile * kTile + i]);
    }
  }
  expected.offsets.push_back(expected.indices.size());
  const DeviceArray<std::uint16_t> there_now = on_device(now);
  const DeviceArray<std::uint16_t> there_sent = on_device(sent);
  const std::vector<SnapshotTensor> tensors{{there_now.data(), there_sent.data(), total}};
  const DetectTable table = must(DetectTable::make(std::span<const SnapshotTensor>(tensors)));
  for (const bool is_wide : {false, true}) {
    const DeviceLists lists(total, 1);
    must(compare_snapshot(table, lists.output(is_wide, total), nullptr));
    areal::tests::wait_for_device();
    AREAL_EXPECT(is_equal(expected, lists, is_wide));
  }
}

void snapshot_finds_bits_that_differ() {
  std::vector<std::uint64_t> sizes{1, 0, 8191, 8193, 70000, 3, 250001};
  const std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  std::vector<std::uint16_t> sent(total + 3);
  std::vector<std::uint16_t> now(total + 1);
  Changes expected;
  for (std::uint64_t i = 0; i < total; ++i) {
    const std::uint64_t word = areal::mix_words(77, i);
    sent[i + 3] = static_cast<std::uint16_t>(word % 9 == 0 ? 0x7FC1 : word % 11 == 0 ? 0x8000 : word >> 48);
    now[i + 1] = word % 13 == 0 ? static_cast<std::uint16_t>(word % 2 == 0 ? 0 : word >> 20) : sent[i + 3];
  }
  std::uint64_t at = 0;
  for (const std::uint64_t size : sizes) {
    for (std::uint64_t i = 0; i < size; ++i, ++at) {
      if (now[at + 1] == sent[at + 3]) continue;
      expected.indices.push_back(static_cast<std::int64_t>(i));
      expected.values.push_back(now[at + 1]);
    }
    expected.offsets.push_back(expected.indices.size());
  }
  const DeviceArray<std::uint16_t> there_now = on_device(now);
  const DeviceArray<std::uint16_t> there_sent = on_device(sent);
  std::vector<SnapshotTensor> tensors;
  at = 0;
  for (const std::uint64_t size : sizes) {
    tensors.push_back({there_now.data() + 1 + at, there_sent.data() + 3 + at, size});
    at += size;
  }
  for (const bool is_wide : {false, true}) {
    const DeviceLists lists(total, sizes.size());
    const DetectTable table = must(DetectTable::make(std::span<const SnapshotTensor>(tensors)));
    must(compare_snapshot(table, lists.output(is_wide, total), nullptr));
    must(compare_snapshot(table, lists.output(is_wide, total), nullptr));
    areal::tests::wait_for_device();
    AREAL_EXPECT(is_equal(expected, lists, is_wide));
  }
}

// A captured launch gives the same again, also after the data has changed.
void graphs_can_be_replayed() {
  Shards shards;
  const ProvenStep step = areal::tests::steps_to_test()[0];
  shards.fill(step, 31);
  DeviceShards there(shards);
  const ChangeRule rule = proven_rule(step);
  const DeviceArray<ChangeRule> rules(std::span(&rule, 1));
  const DeviceLists lists(shards.total, shards.sizes.size());
  const DetectTable table = must(DetectTable::make(std::span<const OptimizerTensor>(there.tensors)));
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  must(cudaStreamCreate(&stream), "stream");
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  must(detect_changes(table, rules.data(), 1, lists.output(false, shards.total), stream));
  must(cudaStreamEndCapture(stream, &graph), "capture");
  must(cudaGraphInstantiate(&ready, graph, 0), "graph");
  for (const std::uint64_t seed : {std::uint64_t{31}, std::uint64_t{32}, std::uint64_t{33}}) {
    shards.fill(step, seed);
    there.weights.put(shards.weights);
    there.exp_avg.put(shards.exp_avg);
    there.exp_avg_sq.put(shards.exp_avg_sq);
    must(cudaGraphLaunch(ready, stream), "graph");
    must(cudaStreamSynchronize(stream), "graph");
    AREAL_EXPECT(is_equal(expected_changes(shards, rule), lists, false));
  }
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

void wrong_arguments_are_refused() {
  const DeviceArray<float> some(64);
  const std::vector<OptimizerTensor> null{{some.data(), nullptr, some.data(), 5, 0}};
  AREAL_EXPECT(!DetectTable::make(std::span<const OptimizerTensor>(null)));
  const auto* odd = reinterpret_cast<const float*>(reinterpret_cast<const char*>(some.data()) + 2);
  const std::vector<OptimizerTensor> unaligned{{odd, some.data(), some.data(), 5, 0}};
  AREAL_EXPECT(!DetectTable::make(std::span<const OptimizerTensor>(unaligned)));
  const std::vector<OptimizerTensor> good{{some.data(), some.data(), some.data(), 5, 0}};
  const DetectTable table = must(DetectTable::make(std::span<const OptimizerTensor>(good)));
  const DeviceLists lists(5, 1);
  AREAL_EXPECT(!compare_snapshot(table, lists.output(false, 5), nullptr));
  ChangeOutput both = lists.output(false, 5);
  both.indices64 = lists.wide.data();
  AREAL_EXPECT(!detect_changes(table, nullptr, 1, both, nullptr));
  ChangeOutput no_offsets = lists.output(false, 5);
  no_offsets.offsets = nullptr;
  AREAL_EXPECT(!detect_changes(table, nullptr, 1, no_offsets, nullptr));
  AREAL_EXPECT(!detect_changes(table, nullptr, 1, lists.output(false, 5), nullptr));
  const std::vector<OptimizerTensor> no_such_rule{{some.data(), some.data(), some.data(), 5, 0xFFFFFFFFU}};
  const DetectTable other = must(DetectTable::make(std::span<const OptimizerTensor>(no_such_rule)));
  const DeviceArray<ChangeRule> rules(1);
  AREAL_EXPECT(!detect_changes(other, rules.data(), 1, lists.output(false, 5), nullptr));
  AREAL_EXPECT(!detect_changes(other, rules.data(), 0, lists.output(false, 5), nullptr));
}

}  // namespace

void test_detect(std::size_t steps) {
  finds_what_the_rule_marks(steps);
  values_of_few_changes();
  tensors_have_their_own_rules();
  what_does_not_fit_is_counted_and_not_written();
  nothing_to_look_at_gives_nothing();
  snapshot_finds_bits_that_differ();
  tiles_of_every_crowd();
  graphs_can_be_replayed();
  wrong_arguments_are_refused();
}
