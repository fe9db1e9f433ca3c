#include <immintrin.h>

#include "kernels/merge/generic.h"

namespace sparcml::avx2 {
namespace {

// Values use vector registers, because the lanes occupy all general ones.
struct Vector {
  template <Op op>
  static void put(std::uint32_t x, const float* u, std::uint32_t y, const float* v,
                  std::uint32_t* oi, float* ov) {
    const __m128i a = _mm_cvtsi32_si128(x), b = _mm_cvtsi32_si128(y);
    const __m128i low = smaller(a, b, oi);
    const __m128 none = _mm_set1_ps(identity<op, float>());
    const __m128 in_a = _mm_castsi128_ps(_mm_cmpeq_epi32(low, a));
    const __m128 in_b = _mm_castsi128_ps(_mm_cmpeq_epi32(low, b));
    *ov = combine_raw<op>(_mm_cvtss_f32(_mm_blendv_ps(none, _mm_load_ss(u), in_a)),
                          _mm_cvtss_f32(_mm_blendv_ps(none, _mm_load_ss(v), in_b)));
  }

  template <Op op>
  static void put(std::uint32_t x, const double* u, std::uint32_t y, const double* v,
                  std::uint32_t* oi, double* ov) {
    const __m128i a = _mm_cvtsi32_si128(x), b = _mm_cvtsi32_si128(y);
    const __m128i low = smaller(a, b, oi);
    const __m128d none = _mm_set1_pd(identity<op, double>());
    const __m128d in_a = _mm_castsi128_pd(_mm_cmpeq_epi64(low, a));
    const __m128d in_b = _mm_castsi128_pd(_mm_cmpeq_epi64(low, b));
    *ov = combine_raw<op>(_mm_cvtsd_f64(_mm_blendv_pd(none, _mm_load_sd(u), in_a)),
                          _mm_cvtsd_f64(_mm_blendv_pd(none, _mm_load_sd(v), in_b)));
  }

  template <Op op>
  static void put(std::uint32_t x, const std::int32_t* u, std::uint32_t y,
                  const std::int32_t* v, std::uint32_t* oi, std::int32_t* ov) {
    const __m128i a = _mm_cvtsi32_si128(x), b = _mm_cvtsi32_si128(y);
    const __m128i low = smaller(a, b, oi), in_a = _mm_cmpeq_epi32(low, a);
    const __m128i in_b = _mm_cmpeq_epi32(low, b);
    const __m128i none = _mm_set1_epi32(identity<op, std::int32_t>());
    *ov = combine_raw<op>(_mm_cvtsi128_si32(_mm_blendv_epi8(none, _mm_loadu_si32(u), in_a)),
                          _mm_cvtsi128_si32(_mm_blendv_epi8(none, _mm_loadu_si32(v), in_b)));
  }

  template <Op op>
  static void put(std::uint32_t x, const std::int64_t* u, std::uint32_t y,
                  const std::int64_t* v, std::uint32_t* oi, std::int64_t* ov) {
    const __m128i a = _mm_cvtsi32_si128(x), b = _mm_cvtsi32_si128(y);
    const __m128i low = smaller(a, b, oi), in_a = _mm_cmpeq_epi64(low, a);
    const __m128i in_b = _mm_cmpeq_epi64(low, b);
    const __m128i none = _mm_set1_epi64x(identity<op, std::int64_t>());
    *ov = combine_raw<op, std::int64_t>(
        _mm_cvtsi128_si64(_mm_blendv_epi8(none, _mm_loadu_si64(u), in_a)),
        _mm_cvtsi128_si64(_mm_blendv_epi8(none, _mm_loadu_si64(v), in_b)));
  }

 private:
  static __m128i smaller(__m128i a, __m128i b, std::uint32_t* oi) {
    __m128i low = _mm_min_epu32(a, b);
    asm("" : "+x"(low));  // prevents the compiler from comparing x and y once with a branch
    _mm_storeu_si32(oi, low);
    return low;
  }
};

}  // namespace

template <class T>
std::size_t merge(Op op, Stream<T> a, Stream<T> b, std::size_t block, std::uint32_t* oi,
                  T* ov) {
  return merge_any<Vector>(op, a, b, block, oi, ov);
}

SPARCML_FOR_NUMBERS(merge);

}  // namespace sparcml::avx2
