// The wire coding on a device: bytes equal to the CPU's, decoded again on both, and damage refused as on CPUs.
#include <algorithm>

#include "engine/delta/cuda/wire.h"
#include "engine/delta/wire/decoder.h"
#include "tests/codec/sample_deltas.h"
#include "tests/codec/sealing.h"
#include "tests/cuda/device_array.h"
#include "tests/cuda/expect.h"

namespace {

using namespace areal::delta::cuda;  // NOLINT(google-build-using-namespace): the subject of this file
namespace wire = areal::delta::wire;
using areal::mix_words;
using areal::tests::DeviceArray;
using areal::tests::make_sample;
using areal::tests::must;
using areal::tests::on_device;
using areal::tests::SampleTensor;
using areal::tests::Spread;
using areal::tests::Steps;

constexpr wire::ValueKind kAllKinds[] = {{wire::Form::kPlain, 2}, {wire::Form::kPlain, 4}, {wire::Form::kSteps, 2}};

// Tensors one after the other in device memory, and their lists, all one element off, so that nothing is aligned.
class DeviceSample {
 public:
  explicit DeviceSample(const std::vector<SampleTensor>& tensors)
      : count_(static_cast<std::uint32_t>(tensors.size())),
        narrow_(on_device(joined<std::int32_t>(tensors, [](const SampleTensor& t) { return t.indices; }))),
        wide_(on_device(joined<std::int64_t>(tensors, [](const SampleTensor& t) { return t.indices; }))),
        half_(on_device(joined<std::uint16_t>(tensors, [](const SampleTensor& t) { return t.half; }))),
        word_(on_device(joined<std::uint32_t>(tensors, [](const SampleTensor& t) { return t.word; }))),
        base_(on_device(joined<std::uint16_t>(tensors, [](const SampleTensor& t) { return t.base; }))),
        offsets_(on_device(offsets_of(tensors))),
        tensors_(on_device(rows_of(tensors))),
        changes_(narrow_.size() - 1) {
    for (const SampleTensor& tensor : tensors) largest_ = std::max(largest_, tensor.elements);
  }

  [[nodiscard]] WireEncodeInput input(wire::ValueKind kind, bool is_wide) const {
    WireEncodeInput made;
    (is_wide ? void() : void(made.indices32 = narrow_.data() + 1));
    if (is_wide) made.indices64 = wide_.data() + 1;
    if (kind.value_bytes == 2) made.values16 = half_.data() + 1;
    if (kind.value_bytes == 4) made.values32 = word_.data() + 1;
    made.offsets = offsets_.data();
    made.tensors = tensors_.data();
    made.count = count_;
    made.most = changes_;
    made.form = kind.form;
    return made;
  }
  [[nodiscard]] const WireTensor* tensors() const { return tensors_.data(); }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  [[nodiscard]] std::uint64_t room(wire::ValueKind kind) const {
    return wire_most_units(count_, changes_, largest_, kind.value_bytes);
  }

 private:
  template <class To, class ListOf>
  static std::vector<To> joined(const std::vector<SampleTensor>& tensors, const ListOf& list_of) {
    std::vector<To> all(1);
    for (const SampleTensor& tensor : tensors) {
      for (const auto value : list_of(tensor)) all.push_back(static_cast<To>(value));
    }
    return all;
  }
  static std::vector<std::uint64_t> offsets_of(const std::vector<SampleTensor>& tensors) {
    std::vector<std::uint64_t> all{0};
    for (const SampleTensor& tensor : tensors) all.push_back(all.back() + tensor.indices.size());
    return all;
  }
  [[nodiscard]] std::vector<WireTensor> rows_of(const std::vector<SampleTensor>& tensors) const {
    std::vector<WireTensor> rows;
    std::uint64_t begin = 1;
    for (const SampleTensor& tensor : tensors) {
      rows.push_back({base_.data() + begin, tensor.elements});
      begin += tensor.elements;
    }
    return rows;
  }

  std::uint32_t count_;
  std::uint64_t largest_ = 0;
  DeviceArray<std::int32_t> narrow_;
  DeviceArray<std::int64_t> wide_;
  DeviceArray<std::uint16_t> half_;
  DeviceArray<std::uint32_t> word_;
  DeviceArray<std::uint16_t> base_;
  DeviceArray<std::uint64_t> offsets_;
  DeviceArray<WireTensor> tensors_;
  std::uint64_t changes_;
};

struct Coded {
  WireOutcome outcome;
  std::vector<std::uint8_t> bytes;
};

Coded encode_there(const WireEncodeInput& input, std::uint64_t room) {
  const DeviceArray<std::uint64_t> units(room);
  const DeviceArray<unsigned char> workspace(wire_encode_workspace(input.count, input.most));
  const DeviceArray<WireOutcome> outcome(1);
  units.fill(0xCD);
  workspace.fill(0xCD);
  must(wire_encode(input, {units.data(), room}, workspace.data(), outcome.data(), nullptr));
  areal::tests::wait_for_device();
  Coded coded{outcome.host()[0], {}};
  if (coded.outcome.worst != kWireGood) return coded;
  const std::vector<std::uint64_t> message = units.host(0, coded.outcome.units);
  coded.bytes.resize(8 * message.size());
  for (std::uint64_t i = 0; i < message.size(); ++i) wire::store_unit(coded.bytes, i, message[i]);
  return coded;
}

// The units of bytes, what is left of the last one being lost.
std::vector<std::uint64_t> units_of(const std::vector<std::uint8_t>& bytes) {
  std::vector<std::uint64_t> units(bytes.size() / 8);
  for (std::uint64_t i = 0; i < units.size(); ++i) units[i] = wire::load_unit(bytes, i);
  return units;
}

struct Decoded {
  WireOutcome outcome;
  std::vector<std::int64_t> indices;
  std::vector<std::uint32_t> values;
  std::vector<std::uint64_t> offsets;
};

Decoded decode_there(const std::vector<std::uint64_t>& message, const DeviceSample& sample, wire::ValueKind kind,
                     bool is_wide) {
  const DeviceArray<std::uint64_t> units = on_device(message);
  const std::uint64_t most = sample.changes();
  const DeviceArray<std::int32_t> narrow(most + 1);
  const DeviceArray<std::int64_t> wide(most + 1);
  const DeviceArray<std::uint16_t> half(most + 1);
  const DeviceArray<std::uint32_t> word(most + 1);
  const DeviceArray<std::uint64_t> offsets(std::size_t{sample.count()} + 1);
  const DeviceArray<unsigned char> workspace(wire_decode_workspace(sample.count()));
  const DeviceArray<WireOutcome> outcome(1);
  workspace.fill(0xCD);
  WireDecodeOutput output;
  if (is_wide) output.indices64 = wide.data() + 1;
  if (!is_wide) output.indices32 = narrow.data() + 1;
  if (kind.value_bytes == 2) output.values16 = half.data() + 1;
  if (kind.value_bytes == 4) output.values32 = word.data() + 1;
  output.offsets = offsets.data();
  output.most = most;
  must(wire_decode(units.data(), message.size(), sample.tensors(), sample.count(), output, workspace.data(),
                   outcome.data(), nullptr));
  areal::tests::wait_for_device();
  Decoded decoded{outcome.host()[0], {}, {}, offsets.host()};
  if (decoded.outcome.worst != kWireGood) return decoded;
  const std::uint64_t changes = decoded.outcome.changes;
  const auto append = [&](auto& to, const auto& from) { to.assign(from.begin(), from.end()); };
  is_wide ? append(decoded.indices, wide.host(1, changes)) : append(decoded.indices, narrow.host(1, changes));
  kind.value_bytes == 2 ? append(decoded.values, half.host(1, changes)) : append(decoded.values, word.host(1, changes));
  return decoded;
}

bool is_sample(const Decoded& decoded, const std::vector<SampleTensor>& tensors, wire::ValueKind kind) {
  std::vector<std::int64_t> indices;
  std::vector<std::uint32_t> values;
  std::vector<std::uint64_t> offsets{0};
  for (const SampleTensor& tensor : tensors) {
    indices.insert(indices.end(), tensor.indices.begin(), tensor.indices.end());
    if (kind.value_bytes == 2) values.insert(values.end(), tensor.half.begin(), tensor.half.end());
    if (kind.value_bytes == 4) values.insert(values.end(), tensor.word.begin(), tensor.word.end());
    offsets.push_back(indices.size());
  }
  return decoded.indices == indices && decoded.values == values && decoded.offsets == offsets;
}

void expect_equal_to_cpu(const std::vector<SampleTensor>& tensors) {
  const DeviceSample sample(tensors);
  for (const wire::ValueKind kind : kAllKinds) {
    const std::vector<std::uint8_t> bytes = must(wire::encode(areal::tests::changes_of(tensors, kind), kind));
    for (const bool is_wide : {false, true}) {
      const Coded coded = encode_there(sample.input(kind, is_wide), sample.room(kind));
      if (!AREAL_EXPECT(bool(wire_status(coded.outcome)))) {
        std::printf("%s\n", wire_status(coded.outcome).error().detail.c_str());
        continue;
      }
      AREAL_EXPECT(coded.bytes == bytes);
      AREAL_EXPECT(coded.outcome.changes == sample.changes());
      const Decoded decoded = decode_there(units_of(bytes), sample, kind, is_wide);
      if (!AREAL_EXPECT(bool(wire_status(decoded.outcome)))) {
        std::printf("%s\n", wire_status(decoded.outcome).error().detail.c_str());
        continue;
      }
      AREAL_EXPECT(is_sample(decoded, tensors, kind));
    }
  }
}

void bytes_are_those_of_cpus() {
  std::uint64_t seed = 1;
  for (const Spread spread : {Spread::kEven, Spread::kRuns, Spread::kFew, Spread::kAll}) {
    for (const Steps steps : {Steps::kOne, Steps::kTail, Steps::kAny}) {
      for (const std::uint64_t one_in : {1, 10, 100, 1000}) {
        expect_equal_to_cpu({make_sample(30'000, {spread, steps, one_in}, ++seed)});
      }
    }
  }
}

void sizes_around_a_block() {
  for (const std::uint64_t elements : {0, 1, 2, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049}) {
    expect_equal_to_cpu({make_sample(elements, {Spread::kAll, Steps::kTail, 1}, elements)});
  }
}

std::vector<SampleTensor> many_tensors() {
  std::vector<SampleTensor> tensors;
  for (std::uint64_t t = 0; t < 500; ++t) {
    const std::uint64_t elements = t % 5 == 0 ? 0 : mix_words(3, t) % (t % 50 == 1 ? 90'000 : 700);
    tensors.push_back(make_sample(elements, {Spread::kEven, Steps::kTail, 1 + t % 7 * 20}, t));
  }
  return tensors;
}

void many_tensors_and_none() {
  expect_equal_to_cpu(many_tensors());
  expect_equal_to_cpu({});
  expect_equal_to_cpu({SampleTensor{}, make_sample(5000, {Spread::kEven, Steps::kTail, 10'000'000}, 1)});
}

// Gaps of up to 2^56 beside small ones.
void wide_gaps() {
  for (const std::uint64_t odd_one_in : {1, 2, 30, 500}) {
    SampleTensor tensor;
    tensor.elements = 1ULL << 62;
    std::int64_t index = 0;
    for (std::uint64_t i = 0; i < 2500; ++i) {
      const std::uint64_t bits = mix_words(5, i) % odd_one_in == 0 ? mix_words(6, i) % 50 : 2;
      index += static_cast<std::int64_t>(1 + mix_words(7, i) % (1ULL << bits));
      tensor.indices.push_back(index);
      tensor.half.push_back(static_cast<std::uint16_t>(mix_words(8, i)));
    }
    const wire::ValueKind kind{};
    const std::vector<SampleTensor> tensors{tensor};
    const DeviceSample sample(tensors);
    const std::vector<std::uint8_t> bytes = must(wire::encode(areal::tests::changes_of(tensors, kind), kind));
    const Coded coded = encode_there(sample.input(kind, true), sample.room(kind));
    AREAL_EXPECT(coded.bytes == bytes);
    AREAL_EXPECT(is_sample(decode_there(units_of(bytes), sample, kind, true), tensors, kind));
    AREAL_EXPECT(!wire_status(decode_there(units_of(bytes), sample, kind, false).outcome));
  }
}

void senders_mistakes_are_refused() {
  std::vector<SampleTensor> tensors{make_sample(40'000, {Spread::kEven, Steps::kTail, 10}, 1),
                                    make_sample(20'000, {Spread::kAll, Steps::kTail, 1}, 2)};
  const wire::ValueKind kind{wire::Form::kSteps, 2};
  {
    const DeviceSample sample(tensors);
    const std::uint64_t needed = encode_there(sample.input(kind, false), sample.room(kind)).outcome.units;
    const Coded coded = encode_there(sample.input(kind, false), needed - 1);
    const areal::Status no_room = wire_status(coded.outcome);
    AREAL_EXPECT(!no_room && no_room.error().code == areal::Errc::kInvalid);
    AREAL_EXPECT(coded.outcome.units == needed);
    AREAL_EXPECT(bool(wire_status(encode_there(sample.input(kind, false), needed).outcome)));
    WireEncodeInput input = sample.input(kind, false);
    input.most -= 1;
    AREAL_EXPECT(!wire_status(encode_there(input, sample.room(kind)).outcome));
    input.indices64 = reinterpret_cast<const std::int64_t*>(input.indices32);
    const WireRoom room{nullptr, 0};
    AREAL_EXPECT(!wire_encode(input, room, nullptr, nullptr, nullptr));
  }
  for (const std::uint64_t place : {0, 1, 1023, 1024, 3500}) {
    for (const std::int64_t wrong : {-1, 40'000, 5}) {
      std::vector<SampleTensor> bad = tensors;
      bad[0].indices[place] = wrong == 5 && place < 2 ? bad[0].indices[place + 1] : wrong;
      const DeviceSample sample(bad);
      AREAL_EXPECT(!wire_status(encode_there(sample.input(kind, false), sample.room(kind)).outcome));
      AREAL_EXPECT(!wire_status(encode_there(sample.input(kind, true), sample.room(kind)).outcome));
    }
  }
}

// Damage, with checks that fit and with others: what CPUs take is taken, what they refuse is refused.
void damage_is_refused_as_on_cpus(std::uint32_t rounds) {
  const std::vector<SampleTensor> tensors{make_sample(300, {Spread::kEven, Steps::kTail, 9}, 1),
                                          make_sample(40, {Spread::kFew, Steps::kAny, 1}, 2),
                                          make_sample(2600, {Spread::kRuns, Steps::kTail, 2}, 3)};
  std::vector<wire::TensorBase> bases;
  for (const SampleTensor& tensor : tensors) bases.push_back({tensor.elements, tensor.base});
  const DeviceSample sample(tensors);
  const wire::ValueKind kind{wire::Form::kSteps, 2};
  const std::vector<std::uint8_t> bytes = must(wire::encode(areal::tests::changes_of(tensors, kind), kind));
  const std::uint64_t first_block =
      8 * (wire::kHeaderUnits + 2 * (wire::load_unit(bytes, 2) + wire::load_unit(bytes, 4)));
  areal::Rng rng(11);
  std::uint32_t refused = 0;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    std::vector<std::uint8_t> received = bytes;
    const std::uint64_t flips = 1 + rng.draw_below(4);
    for (std::uint64_t i = 0; i < flips; ++i) {
      std::uint64_t place = rng.draw_below(received.size());
      if (rng.draw_chance(1, 2)) place = first_block + place % 8;
      received[place] = static_cast<std::uint8_t>(rng.draw_u64());
    }
    const std::uint64_t cut = 8 * rng.draw_below(received.size() / 8);
    if (rng.draw_chance(1, 8)) received.resize(cut);
    if (rng.draw_chance(3, 4)) areal::tests::seal(received);
    const bool is_good = wire::decode<std::int32_t, std::uint16_t>(received, bases).has_value();
    const Decoded decoded = decode_there(units_of(received), sample, kind, round % 2 == 0);
    AREAL_EXPECT(bool(wire_status(decoded.outcome)) == is_good);
    if (is_good) AREAL_EXPECT(is_sample(decoded, tensors, kind));
    refused += is_good ? 0 : 1;
  }
  AREAL_EXPECT(refused > rounds / 2);
  // A base that differs in one value that changes.
  std::vector<SampleTensor> others = tensors;
  others[0].base[static_cast<std::size_t>(others[0].indices[3])] ^= 1;
  const DeviceSample other(others);
  AREAL_EXPECT(!wire_status(decode_there(units_of(bytes), other, kind, false).outcome));
}

__device__ std::int64_t large_index(std::uint64_t i) { return static_cast<std::int64_t>(2 * i + mix_words(1, i) % 2); }
__device__ std::uint16_t large_value(std::uint64_t i) { return static_cast<std::uint16_t>(mix_words(2, i)); }

__global__ void large_kernel(std::int64_t* indices, std::uint16_t* values, std::uint64_t count) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    indices[i] = large_index(i);
    values[i] = large_value(i);
  }
}

__global__ void differs_kernel(const std::int64_t* indices, const std::uint16_t* values, std::uint64_t count,
                               unsigned long long* wrong) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    if (indices[i] != large_index(i) || values[i] != large_value(i)) atomicAdd(wrong, 1ULL);
  }
}

}  // namespace

void test_wire(std::uint32_t rounds) {
  bytes_are_those_of_cpus();
  sizes_around_a_block();
  many_tensors_and_none();
  wide_gaps();
  senders_mistakes_are_refused();
  damage_is_refused_as_on_cpus(rounds);
}

// More than 2^31 changes; needs 30 GB of device memory.
void test_wire_large() {
  constexpr std::uint64_t kChanges = (1ULL << 31) + 4099;
  std::size_t free = 0;
  std::size_t total = 0;
  must(cudaMemGetInfo(&free, &total), "memory");
  if (free < (32ULL << 30)) {
    std::printf("skipped: more than 2^31 changes: too little device memory\n");
    return;
  }
  const DeviceArray<std::int64_t> indices(kChanges);
  const DeviceArray<std::uint16_t> values(kChanges);
  large_kernel<<<2048, 256>>>(indices.data(), values.data(), kChanges);
  const std::vector<WireTensor> tensors{{nullptr, 2 * kChanges}};
  const std::vector<std::uint64_t> sent{0, kChanges};
  const DeviceArray<WireTensor> there = on_device(tensors);
  const DeviceArray<std::uint64_t> offsets = on_device(sent);
  const std::uint64_t room = kChanges / 8 * 19 / 8;  // 2.375 bytes each.
  const DeviceArray<std::uint64_t> units(room);
  const DeviceArray<unsigned char> workspace(wire_encode_workspace(1, kChanges));
  const DeviceArray<WireOutcome> outcome(1);
  WireEncodeInput input;
  input.indices64 = indices.data();
  input.values16 = values.data();
  input.offsets = offsets.data();
  input.tensors = there.data();
  input.count = 1;
  input.most = kChanges;
  must(wire_encode(input, {units.data(), room}, workspace.data(), outcome.data(), nullptr));
  areal::tests::wait_for_device();
  const WireOutcome coded = outcome.host()[0];
  AREAL_EXPECT(bool(wire_status(coded)));
  AREAL_EXPECT(coded.blocks == wire::blocks_of(kChanges));
  indices.fill(0);
  values.fill(0);
  WireDecodeOutput output;
  output.indices64 = indices.data();
  output.values16 = values.data();
  output.offsets = offsets.data();
  output.most = kChanges;
  must(wire_decode(units.data(), coded.units, there.data(), 1, output, workspace.data(), outcome.data(), nullptr));
  areal::tests::wait_for_device();
  AREAL_EXPECT(bool(wire_status(outcome.host()[0])));
  AREAL_EXPECT(offsets.host() == sent);
  const DeviceArray<unsigned long long> wrong(1);
  wrong.fill(0);
  differs_kernel<<<2048, 256>>>(indices.data(), values.data(), kChanges, wrong.data());
  areal::tests::wait_for_device();
  AREAL_EXPECT(wrong.host()[0] == 0);
}
