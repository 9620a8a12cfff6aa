// The kernels with AVX-512F: 16 elements at a time.
#include <immintrin.h>

#include "engine/delta/cpu/vector_kernel.h"

namespace areal::delta {
namespace {

struct Avx512 {
  using Floats = __m512;
  using Words = __m512i;
  using Mask = __mmask16;
  static constexpr std::uint32_t kWidth = 16;

  static Floats all(float value) { return _mm512_set1_ps(value); }
  static Words word(std::uint32_t value) { return _mm512_set1_epi32(static_cast<int>(value)); }
  static Floats load(const float* from) { return _mm512_loadu_ps(from); }
  static Floats load_some(const float* from, std::uint32_t count) {
    return _mm512_maskz_loadu_ps(static_cast<Mask>((1U << count) - 1), from);
  }

  static Floats plus(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats minus(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
  static Floats times(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats over(Floats a, Floats b) { return _mm512_div_ps(a, b); }
  static Floats root(Floats a) { return _mm512_sqrt_ps(a); }
  // The second where one is a NaN.
  static Floats least(Floats a, Floats b) { return _mm512_min_ps(a, b); }
  static Floats most(Floats a, Floats b) { return _mm512_max_ps(a, b); }

  static Words words(Floats a) { return _mm512_castps_si512(a); }
  static Floats floats(Words a) { return _mm512_castsi512_ps(a); }
  static Words add(Words a, Words b) { return _mm512_add_epi32(a, b); }
  static Words subtract(Words a, Words b) { return _mm512_sub_epi32(a, b); }
  static Words smaller(Words a, Words b) { return _mm512_min_epu32(a, b); }
  static Words meet(Words a, Words b) { return _mm512_and_si512(a, b); }
  static Words differ(Words a, Words b) { return _mm512_xor_si512(a, b); }
  static Words upper_half(Words a) { return _mm512_srli_epi32(a, 16); }

  static Mask at_most(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
  static Mask below(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  // Also where one is a NaN.
  static Mask is_not_below(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ); }
  static Mask is_nan(Floats a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
  static Mask is_finite(Floats a) {
    return _mm512_cmplt_epi32_mask(meet(words(a), word(0x7FFFFFFF)), word(kInfinityBits));
  }
  static Mask equal(Words a, Words b) { return _mm512_cmpeq_epi32_mask(a, b); }
  static Mask has_sign(Words a) { return _mm512_test_epi32_mask(a, word(0x80000000)); }
  static Mask both(Mask a, Mask b) { return static_cast<Mask>(a & b); }
  static Mask either(Mask a, Mask b) { return static_cast<Mask>(a | b); }
  static Mask exclusive(Mask a, Mask b) { return static_cast<Mask>(a ^ b); }
  static Mask inverse(Mask a) { return static_cast<Mask>(~a); }
  static Floats select(Mask where, Floats yes, Floats no) { return _mm512_mask_blend_ps(where, no, yes); }
  static Words select(Mask where, Words yes, Words no) { return _mm512_mask_blend_epi32(where, no, yes); }
  static std::uint32_t lanes(Mask a) { return a; }

  static void put(MarkedBits& bits, std::uint32_t place, std::uint32_t marked) {
    const auto lower = static_cast<std::uint16_t>(marked);
    __builtin_memcpy(reinterpret_cast<unsigned char*>(bits.words) + place / 8, &lower, sizeof(lower));
  }
};

}  // namespace

Kernels avx512_kernels() { return kernels_of<Avx512>(); }

}  // namespace areal::delta
