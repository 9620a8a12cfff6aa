// The kernels with AVX2: 8 elements at a time.
#include <immintrin.h>

#include "engine/delta/cpu/vector_kernel.h"

namespace areal::delta {
namespace {

struct Avx2 {
  using Floats = __m256;
  using Words = __m256i;
  using Mask = __m256i;  // All or no bits of a lane.
  static constexpr std::uint32_t kWidth = 8;

  static Floats all(float value) { return _mm256_set1_ps(value); }
  static Words word(std::uint32_t value) { return _mm256_set1_epi32(static_cast<int>(value)); }
  static Floats load(const float* from) { return _mm256_loadu_ps(from); }
  static Floats load_some(const float* from, std::uint32_t count) {
    return _mm256_maskload_ps(from, _mm256_cmpgt_epi32(word(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
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
  static Words smaller(Words a, Words b) { return _mm256_min_epu32(a, b); }
  static Words meet(Words a, Words b) { return _mm256_and_si256(a, b); }
  static Words differ(Words a, Words b) { return _mm256_xor_si256(a, b); }
  static Words upper_half(Words a) { return _mm256_srli_epi32(a, 16); }

  static Mask at_most(Floats a, Floats b) { return words(_mm256_cmp_ps(a, b, _CMP_LE_OQ)); }
  static Mask below(Floats a, Floats b) { return words(_mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
  // Also where one is a NaN.
  static Mask is_not_below(Floats a, Floats b) { return words(_mm256_cmp_ps(a, b, _CMP_NLT_UQ)); }
  static Mask is_nan(Floats a) { return words(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)); }
  static Mask is_finite(Floats a) { return _mm256_cmpgt_epi32(word(kInfinityBits), meet(words(a), word(0x7FFFFFFF))); }
  static Mask equal(Words a, Words b) { return _mm256_cmpeq_epi32(a, b); }
  static Mask has_sign(Words a) { return _mm256_srai_epi32(a, 31); }
  static Mask both(Mask a, Mask b) { return meet(a, b); }
  static Mask either(Mask a, Mask b) { return _mm256_or_si256(a, b); }
  static Mask exclusive(Mask a, Mask b) { return differ(a, b); }
  static Mask inverse(Mask a) { return differ(a, word(0xFFFFFFFF)); }
  static Floats select(Mask where, Floats yes, Floats no) { return _mm256_blendv_ps(no, yes, floats(where)); }
  static Words select(Mask where, Words yes, Words no) { return _mm256_blendv_epi8(no, yes, where); }
  static std::uint32_t lanes(Mask a) { return static_cast<std::uint32_t>(_mm256_movemask_ps(floats(a))); }

  static void put(MarkedBits& bits, std::uint32_t place, std::uint32_t marked) {
    reinterpret_cast<unsigned char*>(bits.words)[place / 8] = static_cast<unsigned char>(marked);
  }
};

}  // namespace

Kernels avx2_kernels() { return kernels_of<Avx2>(); }

}  // namespace areal::delta
