// Digests, fingerprints and counts of what is not finite, on a device against the host's.
#include <numeric>

#include "engine/delta/cuda/tensor_scan.h"
#include "engine/delta/element_digest.h"
#include "engine/delta/fingerprint.h"
#include "tests/cuda/device_array.h"
#include "tests/cuda/expect.h"

namespace {

using namespace areal::delta;        // NOLINT(google-build-using-namespace): the subjects of this file
using namespace areal::delta::cuda;  // NOLINT(google-build-using-namespace)
using areal::mix_words;
using areal::tests::DeviceArray;
using areal::tests::must;
using areal::tests::on_device;

template <class Word>
struct Pieces {
  std::vector<std::uint64_t> sizes{0, 1, 2, 7, 16384, 16385, 0, 4099, 250007, 3, 8191, 40000};
  std::vector<std::uint64_t> starts;
  std::vector<Word> words;
  std::vector<TensorPiece> pieces;
  std::uint64_t chunks = 0;
  DeviceArray<Word> there;
  DeviceArray<TensorPiece> there_pieces;

  Pieces() : there(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{40})), there_pieces(sizes.size()) {
    words.resize(there.size());
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<Word>(mix_words(sizeof(Word), i));
    there.put(words);
    std::uint64_t at = 1;
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      starts.push_back(at);
      pieces.push_back({there.data() + at, sizes[t], 0, mix_words(1, t), static_cast<std::uint32_t>(100 + t), 0});
      at += sizes[t] + t % 4;
    }
    chunks = number_chunks(std::span(pieces));
    there_pieces.put(pieces);
  }
  [[nodiscard]] PieceList list() const {
    return {there_pieces.data(), static_cast<std::uint32_t>(sizes.size()), chunks, sizeof(Word)};
  }
};

template <class Word>
void digests_are_the_hosts() {
  const Pieces<Word> pieces;
  const DeviceArray<std::uint64_t> scratch(digest_scratch_bytes(static_cast<std::uint32_t>(pieces.sizes.size())) / 8);
  const DeviceArray<areal::Digest128> digests(pieces.sizes.size());
  must(digest_pieces(pieces.list(), scratch.data(), digests.data(), nullptr));
  areal::tests::wait_for_device();
  const std::vector<areal::Digest128> found = digests.host();
  for (std::size_t t = 0; t < pieces.sizes.size(); ++t) {
    ElementSum sum;
    for (std::uint64_t i = 0; i < pieces.sizes[t]; ++i) {
      sum.add(element_digest(pieces.pieces[t].tensor, pieces.pieces[t].first_index + i,
                             pieces.words[pieces.starts[t] + i]));
    }
    AREAL_EXPECT(found[t] == sum.digest());
  }
}

template <class Word>
void fingerprints_are_the_hosts() {
  const Pieces<Word> pieces;
  const DeviceArray<DeviceFingerprint> prints(pieces.sizes.size());
  must(fingerprint_pieces(pieces.list(), prints.data(), nullptr));
  areal::tests::wait_for_device();
  const std::vector<DeviceFingerprint> found = prints.host();
  for (std::size_t t = 0; t < pieces.sizes.size(); ++t) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(pieces.words.data() + pieces.starts[t]);
    const Fingerprint expected = fingerprint_of({bytes, pieces.sizes[t] * sizeof(Word)}, areal::DType::kBf16);
    AREAL_EXPECT(found[t].bytes == expected.bytes && found[t].total == expected.total);
    AREAL_EXPECT(found[t].weighted == expected.weighted && found[t].sampled == expected.sampled);
    AREAL_EXPECT(found[t].first == expected.first && found[t].last == expected.last);
  }
}

template <class Word>
void not_finite_are_counted() {
  constexpr std::uint32_t kExponent = sizeof(Word) == 4 ? 0x7F800000U : 0x7F80U;
  const Pieces<Word> pieces;
  const DeviceArray<std::uint64_t> counts(pieces.sizes.size());
  must(count_not_finite(pieces.list(), counts.data(), nullptr));
  areal::tests::wait_for_device();
  const std::vector<std::uint64_t> found = counts.host();
  std::uint64_t all = 0;
  for (std::size_t t = 0; t < pieces.sizes.size(); ++t) {
    std::uint64_t expected = 0;
    for (std::uint64_t i = 0; i < pieces.sizes[t]; ++i) {
      if ((pieces.words[pieces.starts[t] + i] & kExponent) == kExponent) ++expected;
    }
    all += expected;
    AREAL_EXPECT(found[t] == expected);
  }
  AREAL_EXPECT(all > 100);
}

}  // namespace

void test_scan() {
  digests_are_the_hosts<std::uint16_t>();
  digests_are_the_hosts<std::uint32_t>();
  fingerprints_are_the_hosts<std::uint16_t>();
  fingerprints_are_the_hosts<std::uint32_t>();
  not_finite_are_counted<std::uint16_t>();
  not_finite_are_counted<std::uint32_t>();
}
