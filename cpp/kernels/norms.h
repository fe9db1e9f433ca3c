// Norms of float32 values, in the same order on every instruction set: value i is added to lane
// i mod 8, and the lanes as ((0+4) + (2+6)) + ((1+5) + (3+7)). NaN and infinities are ignored.
//
// op.h explains the anonymous namespace.
#pragma once

#include <cmath>
#include <cstddef>

namespace sparcml {
namespace {

inline double tree(const double* lane) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
         ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// Returns a value, or zero in place of NaN and infinities.
inline float finite(float x) { return x - x == 0 ? x : 0; }
#ifdef SPARCML_AVX2
inline __m256 finite(__m256 x) {
  return _mm256_and_ps(x, _mm256_cmp_ps(_mm256_sub_ps(x, x), _mm256_setzero_ps(), _CMP_EQ_OQ));
}
#endif

// Returns the largest magnitude.
inline float largest(const float* v, std::size_t n) {
  std::size_t i = 0;
  float all = 0;
#ifdef SPARCML_AVX2
  const __m256 sign = _mm256_set1_ps(-0.0f);
  __m256 maxima[4] = {};
  for (; i + 32 <= n; i += 32)
    for (int k = 0; k < 4; ++k) {
      const __m256 size = _mm256_andnot_ps(sign, _mm256_loadu_ps(v + i + 8 * k));
      maxima[k] = _mm256_max_ps(finite(size), maxima[k]);
    }
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, _mm256_max_ps(_mm256_max_ps(maxima[0], maxima[1]),
                                       _mm256_max_ps(maxima[2], maxima[3])));
  for (float lane : lanes) all = lane > all ? lane : all;
#else
  float maxima[8] = {};
  for (; i + 8 <= n; i += 8)
    for (std::size_t j = 0; j < 8; ++j) {
      const float size = finite(std::fabs(v[i + j]));
      maxima[j] = size > maxima[j] ? size : maxima[j];
    }
  for (float lane : maxima) all = lane > all ? lane : all;
#endif
  for (; i < n; ++i) {
    const float size = finite(std::fabs(v[i]));
    all = size > all ? size : all;
  }
  return all;
}

// Returns the sum of squares in double precision, which cannot overflow or underflow.
inline double squares(const float* v, std::size_t n) {
  double lane[8] = {};
  std::size_t i = 0;
#ifdef SPARCML_AVX2
  __m256d low = _mm256_setzero_pd(), high = _mm256_setzero_pd();
  for (; i + 8 <= n; i += 8) {
    const __m256 x = finite(_mm256_loadu_ps(v + i));
    const __m256d a = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    const __m256d b = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
    low = _mm256_add_pd(low, _mm256_mul_pd(a, a));
    high = _mm256_add_pd(high, _mm256_mul_pd(b, b));
  }
  _mm256_storeu_pd(lane, low);
  _mm256_storeu_pd(lane + 4, high);
#else
  for (; i + 8 <= n; i += 8)
    for (std::size_t j = 0; j < 8; ++j) {
      const double x = finite(v[i + j]);
      lane[j] += x * x;
    }
#endif
  for (std::size_t j = 0; i < n; ++i, ++j) {
    const double x = finite(v[i]);
    lane[j] += x * x;
  }
  return tree(lane);
}

}  // namespace
}  // namespace sparcml
