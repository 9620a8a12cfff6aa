// The wire coding of deltas: any bytes are refused or decoded, by both paths alike.
#include <algorithm>

#include "engine/delta/wire/decoder.h"
#include "engine/delta/wire/encoder.h"
#include "tests/codec/sample_deltas.h"
#include "tests/codec/sealing.h"
#include "tests/fuzz/targets.h"

namespace areal::fuzz {
namespace {

using namespace delta::wire;  // NOLINT(google-build-using-namespace): the subject of this file

constexpr ValueKind kKinds[] = {{Form::kPlain, 2}, {Form::kPlain, 4}, {Form::kSteps, 2}};

const std::vector<tests::SampleTensor>& receiver() {
  static const std::vector<tests::SampleTensor> kTensors = {
      tests::make_sample(3000, {.one_in = 2}, 1), tests::make_sample(0, {}, 2),
      tests::make_sample(70, {.spread = tests::Spread::kFew, .steps = tests::Steps::kAny}, 3)};
  return kTensors;
}

template <class Value>
void decode_by_both(View bytes) {
  std::vector<TensorBase> bases;
  for (const tests::SampleTensor& tensor : receiver()) bases.push_back({tensor.elements, tensor.base});
  const auto fast = decode<std::int64_t, Value>(bytes, bases, Path::kFast);
  const auto reference = decode<std::int64_t, Value>(bytes, bases, Path::kReference);
  AREAL_CHECK(fast.has_value() == reference.has_value());
  if (!fast) return;
  AREAL_CHECK(fast->indices == reference->indices && fast->values == reference->values);
  AREAL_CHECK(fast->offsets.size() == bases.size() + 1);
  for (std::size_t t = 0; t < bases.size(); ++t) {
    const auto begin = fast->indices.begin() + static_cast<std::ptrdiff_t>(fast->offsets[t]);
    const auto end = fast->indices.begin() + static_cast<std::ptrdiff_t>(fast->offsets[t + 1]);
    AREAL_CHECK(std::adjacent_find(begin, end, std::greater_equal{}) == end);
    AREAL_CHECK(begin == end || static_cast<std::uint64_t>(*(end - 1)) < bases[t].elements);
  }
}

}  // namespace

// As it is, and once more with checks that fit.
void fuzz_delta(View input) {
  Bytes sealed(input.begin(), input.end());
  tests::seal(sealed);
  for (const View bytes : {input, View(sealed)}) {
    decode_by_both<std::uint16_t>(bytes);
    decode_by_both<std::uint32_t>(bytes);
  }
}

std::vector<Bytes> delta_seeds() {
  std::vector<Bytes> seeds;
  for (const ValueKind kind : kKinds) {
    const auto bytes = encode(tests::changes_of(receiver(), kind), kind);
    AREAL_CHECK(bytes.has_value());
    seeds.push_back(*bytes);
  }
  return seeds;
}

}  // namespace areal::fuzz
