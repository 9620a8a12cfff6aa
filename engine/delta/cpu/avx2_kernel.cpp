// The kernels with AVX2: 8 elements at a time.
#include <immintrin.h>

#include "engine/delta/cpu/vector_kernel.h"

namespace areal::delta {
namespace {

// For each set of lanes, the numbers of its lanes in order, a byte each: how to move them to the front.
struct Permutations {
  std::uint64_t lanes[256];
};

constexpr Permutations make_permutations() {
  Permutations made{};
  for (std::uint32_t set = 0; set < 256; ++set) {
    std::uint32_t place = 0;
    for (std::uint64_t lane = 0; lane < 8; ++lane) {
      if ((set >> lane & 1U) != 0) made.lanes[set] |= lane << (8 * place++);
    }
  }
  return made;
}

constexpr Permutations kPermutations = make_permutations();

struct Avx2 {
  using Floats = __m256;
  using Words = __m256i;
  using Mask = __m256i;  // All or no bits of a lane.
  static constexpr std::uint32_t kWidth = 8;

  static Floats all(float value) { return _mm256_set1_ps(value); }
  static Words word(std::uint32_t value) { return _mm256_set1_epi32(static_cast<int>(value)); }
  static Words counting() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
  static Floats load(const float* from) { return _mm256_loadu_ps(from); }
  static Floats load_some(const float* from, std::uint32_t count) {
    return _mm256_maskload_ps(from, _mm256_cmpgt_epi32(word(count), counting()));
  }

  static Floats plus(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Floats minus(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
  static Floats times(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats over(Floats a, Floats b) { return _mm256_div_ps(a, b); }
  static Floats root(Floats a) { return _mm256_sqrt_ps(a); }
  // The second where one is a NaN.
  static Floats least(Floats a, Floats b) { return _mm256_min_ps(a, b); }
  static Floats most(Floats a, Floats b) { return _mm256_max_ps(a, b); }

  static Words words(Floats a) { return _mm256_castps_si256(a); }
  static Floats floats(Words a) { return _mm256_castsi256_ps(a); }
  static Words add(Words a, Words b) { return _mm256_add_epi32(a, b); }
  static Words subtract(Words a, Words b) { return _mm256_sub_epi32(a, b); }
  // Of a signed difference, as an unsigned number.
  static Words distance(Words a) { return _mm256_abs_epi32(a); }
  static Words smaller(Words a, Words b) { return _mm256_min_epu32(a, b); }
  static Words larger(Words a, Words b) { return _mm256_max_epu32(a, b); }
  static Words meet(Words a, Words b) { return _mm256_and_si256(a, b); }
  static Words join(Words a, Words b) { return _mm256_or_si256(a, b); }
  static Words differ(Words a, Words b) { return _mm256_xor_si256(a, b); }
  static Words upper_half(Words a) { return _mm256_srli_epi32(a, 16); }

  static Mask at_most(Floats a, Floats b) { return words(_mm256_cmp_ps(a, b, _CMP_LE_OQ)); }
  static Mask below(Floats a, Floats b) { return words(_mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
  static Mask is_nan(Floats a) { return words(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)); }
  static Mask is_finite(Floats a) { return _mm256_cmpgt_epi32(word(kInfinityBits), meet(words(a), word(0x7FFFFFFF))); }
  static Mask equal(Words a, Words b) { return _mm256_cmpeq_epi32(a, b); }
  static Mask has_sign(Words a) { return _mm256_srai_epi32(a, 31); }
  static Mask any_of(Words a, std::uint32_t bits) { return inverse(equal(meet(a, word(bits)), word(0))); }
  static Mask both(Mask a, Mask b) { return meet(a, b); }
  static Mask either(Mask a, Mask b) { return join(a, b); }
  static Mask exclusive(Mask a, Mask b) { return differ(a, b); }
  static Mask inverse(Mask a) { return differ(a, word(0xFFFFFFFF)); }
  static Floats select(Mask where, Floats yes, Floats no) { return _mm256_blendv_ps(no, yes, floats(where)); }
  static Words select(Mask where, Words yes, Words no) { return _mm256_blendv_epi8(no, yes, where); }
  static std::uint32_t lanes(Mask a) { return static_cast<std::uint32_t>(_mm256_movemask_ps(floats(a))); }

  static std::uint32_t signs(Words a) { return lanes(a); }

  static std::uint32_t store_packed(std::uint32_t marked, Words words, std::uint32_t* to) {
    const Words order = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(kPermutations.lanes[marked])));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(words, order));
    return static_cast<std::uint32_t>(__builtin_popcount(marked));
  }
};

std::uint32_t avx2_proven(const ProvenScalars& scalars, const KernelBlock& block) {
  return find_by_proof<Avx2>(scalars, block);
}

std::uint32_t avx2_margin(const MarginScalars& scalars, const KernelBlock& block) {
  return find_by_margin<Avx2>(scalars, block);
}

}  // namespace

Kernels avx2_kernels() { return {&avx2_proven, &avx2_margin}; }

}  // namespace areal::delta
