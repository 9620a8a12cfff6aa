// Patches on a device: sparse and dense, sorted and shuffled, refused entries, gathered values.
#include <algorithm>
#include <numeric>

#include "engine/delta/bf16.h"
#include "engine/delta/cuda/apply.h"
#include "tests/cuda/device_array.h"
#include "tests/cuda/expect.h"
#include "tests/cuda/strata.h"

namespace {

using namespace areal::delta::cuda;  // NOLINT(google-build-using-namespace): the subject of this file
using areal::mix_words;
using areal::tests::DeviceArray;
using areal::tests::must;
using areal::tests::on_device;

// Many tensors in one flat array, one element apart so that starts are not aligned; and changes of them.
struct Patches {
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint64_t> starts;
  std::vector<std::uint16_t> weights;
  std::vector<std::uint64_t> offsets{0};
  std::vector<std::int32_t> indices;
  std::vector<std::uint16_t> values;
  std::vector<std::uint16_t> expected;

  explicit Patches(std::uint64_t one_in) {
    for (std::uint64_t t = 0; t < 700; ++t)
      sizes.push_back(t % 5 == 0 ? 0 : mix_words(3, t) % (t % 50 == 1 ? 90000 : 700));
    std::uint64_t at = 1;
    for (const std::uint64_t size : sizes) {
      starts.push_back(at);
      at += size + 1;
    }
    weights.resize(at);
    for (std::uint64_t i = 0; i < at; ++i) weights[i] = static_cast<std::uint16_t>(mix_words(4, i));
    expected = weights;
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      for (std::uint64_t i = 0; i < sizes[t]; ++i) {
        if (mix_words(starts[t], i) % one_in != 0) continue;
        indices.push_back(static_cast<std::int32_t>(i));
        values.push_back(static_cast<std::uint16_t>(mix_words(6, starts[t] + i)));
        expected[starts[t] + i] = values.back();
      }
      offsets.push_back(indices.size());
    }
  }

  void shuffle() {
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      for (std::uint64_t k = offsets[t]; k + 1 < offsets[t + 1]; ++k) {
        const std::uint64_t other = k + mix_words(8, k) % (offsets[t + 1] - k);
        std::swap(indices[k], indices[other]);
        std::swap(values[k], values[other]);
      }
    }
  }
};

struct DevicePatches {
  explicit DevicePatches(const Patches& patches)
      : weights(on_device(patches.weights)),
        offsets(on_device(patches.offsets)),
        narrow(on_device(patches.indices)),
        wide(on_device(std::vector<std::int64_t>(patches.indices.begin(), patches.indices.end()))),
        values(on_device(patches.values)),
        targets(on_device(targets_of(patches))),
        refused(1) {
    refused.fill(0);
    list = {
        narrow.data(),         nullptr, values.data(), offsets.data(), static_cast<std::uint32_t>(patches.sizes.size()),
        patches.indices.size()};
  }
  [[nodiscard]] std::vector<ApplyTarget> targets_of(const Patches& patches) const {
    std::vector<ApplyTarget> made;
    for (std::size_t t = 0; t < patches.sizes.size(); ++t)
      made.push_back({weights.data() + patches.starts[t], patches.sizes[t]});
    return made;
  }
  DeviceArray<std::uint16_t> weights;
  DeviceArray<std::uint64_t> offsets;
  DeviceArray<std::int32_t> narrow;
  DeviceArray<std::int64_t> wide;
  DeviceArray<std::uint16_t> values;
  DeviceArray<ApplyTarget> targets;
  DeviceArray<std::uint64_t> refused;
  PatchList list;
};

void sparse_writes_every_entry_and_nothing_else() {
  for (const std::uint64_t one_in : {std::uint64_t{1}, std::uint64_t{10}, std::uint64_t{1000}}) {
    for (const bool is_shuffled : {false, true}) {
      for (const bool is_wide : {false, true}) {
        Patches patches(one_in);
        if (is_shuffled) patches.shuffle();
        DevicePatches there(patches);
        if (is_wide) there.list.indices32 = nullptr, there.list.indices64 = there.wide.data();
        must(apply_sparse(there.targets.data(), there.list, there.refused.data(), nullptr));
        areal::tests::wait_for_device();
        AREAL_EXPECT(there.weights.host() == patches.expected);
        AREAL_EXPECT(there.refused.host()[0] == 0);
        must(count_refused(there.targets.data(), there.list, there.refused.data(), nullptr));
        areal::tests::wait_for_device();
        AREAL_EXPECT((there.refused.host()[0] == 0) == !is_shuffled);
      }
    }
  }
}

void entries_outside_are_refused() {
  Patches patches(10);
  std::uint64_t wrong = 0;
  for (std::size_t t = 0; t < patches.sizes.size(); ++t) {
    for (std::uint64_t k = patches.offsets[t]; k < patches.offsets[t + 1]; ++k) {
      if (k % 97 != 0) continue;
      const std::uint64_t place = patches.starts[t] + static_cast<std::uint64_t>(patches.indices[k]);
      patches.expected[place] = patches.weights[place];
      patches.indices[k] = k % 2 == 0 ? -1 : static_cast<std::int32_t>(patches.sizes[t]);
      ++wrong;
    }
  }
  DevicePatches there(patches);
  must(count_refused(there.targets.data(), there.list, there.refused.data(), nullptr));
  areal::tests::wait_for_device();
  AREAL_EXPECT(there.refused.host()[0] >= wrong);
  there.refused.fill(0);
  must(apply_sparse(there.targets.data(), there.list, there.refused.data(), nullptr));
  areal::tests::wait_for_device();
  AREAL_EXPECT(there.refused.host()[0] == wrong);
  AREAL_EXPECT(there.weights.host() == patches.expected);
}

// As of a detector whose output was too small.
void entries_beyond_the_lists_are_refused() {
  const Patches patches(10);
  DevicePatches there(patches);
  const DeviceArray<std::uint16_t> values(patches.values.size());
  std::vector<GatherSource> sources;
  for (const ApplyTarget& target : there.targets_of(patches))
    sources.push_back({nullptr, target.weights, target.elements});
  const DeviceArray<GatherSource> there_sources = on_device(sources);
  for (const std::uint64_t most : {patches.indices.size() - 1, std::size_t{5}, std::size_t{0}}) {
    there.list.most = most;
    const std::uint64_t beyond = patches.indices.size() - most;
    const auto counts = [&](const areal::Status& launched) {
      must(launched);
      areal::tests::wait_for_device();
      const bool is_right = there.refused.host()[0] == beyond;
      there.refused.fill(0);
      return is_right;
    };
    AREAL_EXPECT(counts(count_refused(there.targets.data(), there.list, there.refused.data(), nullptr)));
    AREAL_EXPECT(counts(apply_sparse(there.targets.data(), there.list, there.refused.data(), nullptr)));
    AREAL_EXPECT(counts(gather_values(there_sources.data(), there.list, values.data(), there.refused.data(), nullptr)));
  }
}

void missing_arguments_are_refused() {
  const Patches patches(10);
  DevicePatches there(patches);
  PatchList list = there.list;
  list.values = nullptr;
  AREAL_EXPECT(!apply_sparse(there.targets.data(), list, there.refused.data(), nullptr));
  list = there.list;
  list.indices64 = there.wide.data();
  AREAL_EXPECT(!apply_sparse(there.targets.data(), list, there.refused.data(), nullptr));
  AREAL_EXPECT(!apply_sparse(nullptr, there.list, there.refused.data(), nullptr));
  AREAL_EXPECT(!count_refused(there.targets.data(), there.list, nullptr, nullptr));
  const DeviceArray<GatherSource> sources(patches.sizes.size());
  AREAL_EXPECT(!gather_values(sources.data(), there.list, nullptr, there.refused.data(), nullptr));
}

void dense_copies_whole_tensors() {
  const Patches patches(3);
  const DevicePatches there(patches);
  const DeviceArray<std::uint16_t> source = on_device(patches.expected);
  for (const std::uint64_t shift : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{8}}) {
    DeviceArray<std::uint16_t> target(patches.expected.size() + 8);
    target.fill(0xCD);
    std::vector<std::uint16_t> expected(target.size(), 0xCDCD);
    std::vector<DenseCopy> copies;
    for (std::size_t t = 0; t < patches.sizes.size(); ++t) {
      copies.push_back(
          {source.data() + patches.starts[t], target.data() + shift + patches.starts[t], patches.sizes[t], 0});
      std::copy_n(patches.expected.begin() + static_cast<std::ptrdiff_t>(patches.starts[t]), patches.sizes[t],
                  expected.begin() + static_cast<std::ptrdiff_t>(shift + patches.starts[t]));
    }
    const std::uint64_t chunks = number_chunks(std::span(copies));
    const DeviceArray<DenseCopy> there_copies = on_device(copies);
    must(copy_dense(there_copies.data(), static_cast<std::uint32_t>(copies.size()), chunks, nullptr));
    areal::tests::wait_for_device();
    AREAL_EXPECT(target.host() == expected);
  }
}

void gather_takes_values_of_both_kinds() {
  const Patches patches(10);
  const DevicePatches there(patches);
  std::vector<float> floats(patches.weights.size());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    floats[i] = areal::delta::float_of_bits(static_cast<std::uint32_t>(mix_words(12, i)));
  }
  const DeviceArray<float> there_floats = on_device(floats);
  std::vector<GatherSource> sources;
  std::vector<std::uint16_t> expected;
  for (std::size_t t = 0; t < patches.sizes.size(); ++t) {
    const bool is_fp32 = t % 2 == 0;
    sources.push_back({is_fp32 ? there_floats.data() + patches.starts[t] : nullptr,
                       is_fp32 ? nullptr : there.weights.data() + patches.starts[t], patches.sizes[t]});
    for (std::uint64_t k = patches.offsets[t]; k < patches.offsets[t + 1]; ++k) {
      const std::uint64_t place = patches.starts[t] + static_cast<std::uint64_t>(patches.indices[k]);
      expected.push_back(is_fp32 ? areal::delta::to_bf16(floats[place]) : patches.weights[place]);
    }
  }
  const DeviceArray<GatherSource> there_sources = on_device(sources);
  const DeviceArray<std::uint16_t> values(expected.size());
  PatchList wide = there.list;
  wide.indices32 = nullptr, wide.indices64 = there.wide.data();
  for (const PatchList& list : {there.list, wide}) {
    values.fill(0xCD);
    must(gather_values(there_sources.data(), list, values.data(), there.refused.data(), nullptr));
    areal::tests::wait_for_device();
    AREAL_EXPECT(values.host() == expected);
    AREAL_EXPECT(there.refused.host()[0] == 0);
  }
  // An index outside takes nothing.
  const std::size_t last = expected.size() - 1;
  std::vector<std::int64_t> bad = there.wide.host();
  bad[last] = -1;
  expected[last] = 0;
  there.wide.put(bad);
  must(gather_values(there_sources.data(), wide, values.data(), there.refused.data(), nullptr));
  areal::tests::wait_for_device();
  AREAL_EXPECT(values.host() == expected);
  AREAL_EXPECT(there.refused.host()[0] == 1);
}

}  // namespace

void test_apply() {
  sparse_writes_every_entry_and_nothing_else();
  entries_outside_are_refused();
  entries_beyond_the_lists_are_refused();
  missing_arguments_are_refused();
  dense_copies_whole_tensors();
  gather_takes_values_of_both_kinds();
}
