#include <immintrin.h>

#include "kernels/moments/generic.h"

namespace sparcml::avx2 {
namespace {

struct Vectors {
  // Adds all but the last values, fewer than 8.
  static std::size_t add(const float* v, std::size_t n, Lanes& lanes) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 largest = _mm256_loadu_ps(lanes.largest);
    __m256d sum[2], squares[2];
    for (int k = 0; k < 2; ++k) {
      sum[k] = _mm256_loadu_pd(lanes.sum + 4 * k);
      squares[k] = _mm256_loadu_pd(lanes.squares + 4 * k);
    }
    __m256i numbers = _mm256_setzero_si256();
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
      __m256 x = _mm256_loadu_ps(v + i);
      const __m256 number = _mm256_cmp_ps(x, x, _CMP_ORD_Q);
      x = _mm256_and_ps(x, number);
      numbers = _mm256_sub_epi32(numbers, _mm256_castps_si256(number));
      largest = _mm256_max_ps(largest, _mm256_andnot_ps(sign, x));
      const __m256d a = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
      const __m256d b = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
      sum[0] = _mm256_add_pd(sum[0], a);
      sum[1] = _mm256_add_pd(sum[1], b);
      squares[0] = _mm256_add_pd(squares[0], _mm256_mul_pd(a, a));
      squares[1] = _mm256_add_pd(squares[1], _mm256_mul_pd(b, b));
    }
    _mm256_storeu_ps(lanes.largest, largest);
    for (int k = 0; k < 2; ++k) {
      _mm256_storeu_pd(lanes.sum + 4 * k, sum[k]);
      _mm256_storeu_pd(lanes.squares + 4 * k, squares[k]);
    }
    alignas(32) std::uint32_t counts[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(counts), numbers);
    for (std::uint32_t count : counts) lanes.count += count;
    return i;
  }
};

}  // namespace

Moments moments(const float* values, std::size_t n) { return all_moments<Vectors>(values, n); }

}  // namespace sparcml::avx2
