// A lower bound on the k-th largest key of a bucket, from the maxima of groups of its values.
//
// Value i is in group i mod 32 (for doubles 16). k groups have a maximum of at least the k-th
// largest maximum, so at least k values are that large. All such values lie in these groups, so
// there are not many more.
//
// op.h explains the anonymous namespace.
#pragma once

#include <algorithm>
#include <functional>

#include "kernels/selection/magnitude.h"

namespace sparcml {
namespace {

template <class T>
constexpr std::size_t kGroups = 128 / sizeof(T);

#ifdef SPARCML_AVX2

inline __m256i keys_of(const float* x) {
  const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  return _mm256_and_si256(v, _mm256_set1_epi32(kNone<float>));
}
inline __m256i keys_of(const double* x) {
  const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  return _mm256_and_si256(v, _mm256_set1_epi64x(kNone<double>));
}

template <class T>
struct Lane;
template <>
struct Lane<float> {
  static __m256i max(__m256i a, __m256i b) { return _mm256_max_epi32(a, b); }
  static __m256i equal(__m256i a, __m256i b) { return _mm256_cmpeq_epi32(a, b); }
  // Returns the largest lane in all lanes.
  static __m256i top(__m256i a) {
    a = max(a, _mm256_permute2x128_si256(a, a, 1));
    a = max(a, _mm256_shuffle_epi32(a, 0x4e));
    return max(a, _mm256_shuffle_epi32(a, 0xb1));
  }
  static int count(__m256i equal) {
    return _mm_popcnt_u32(_mm256_movemask_ps(_mm256_castsi256_ps(equal)));
  }
  static std::int32_t first(__m256i a) { return _mm256_extract_epi32(a, 0); }
};
template <>
struct Lane<double> {
  static __m256i max(__m256i a, __m256i b) {
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
  }
  static __m256i equal(__m256i a, __m256i b) { return _mm256_cmpeq_epi64(a, b); }
  static __m256i top(__m256i a) {
    a = max(a, _mm256_permute2x128_si256(a, a, 1));
    return max(a, _mm256_shuffle_epi32(a, 0x4e));
  }
  static int count(__m256i equal) {
    return _mm_popcnt_u32(_mm256_movemask_pd(_mm256_castsi256_pd(equal)));
  }
  static std::int64_t first(__m256i a) { return _mm256_extract_epi64(a, 0); }
};

// `size` must be a multiple of the number of groups, and k at most that number.
template <class T>
inline Key<T> group_bound(const T* values, std::size_t size, std::size_t k) {
  constexpr std::size_t step = 32 / sizeof(T);
  __m256i maxima[4];
  for (int g = 0; g < 4; ++g) maxima[g] = keys_of(values + g * step);
  for (std::size_t i = 4 * step; i < size; i += 4 * step)
    for (int g = 0; g < 4; ++g)
      maxima[g] = Lane<T>::max(maxima[g], keys_of(values + i + g * step));
  for (std::size_t count = 0;;) {
    const __m256i top = Lane<T>::top(
        Lane<T>::max(Lane<T>::max(maxima[0], maxima[1]), Lane<T>::max(maxima[2], maxima[3])));
    for (auto& m : maxima) {
      const __m256i equal = Lane<T>::equal(m, top);
      count += Lane<T>::count(equal);
      m = _mm256_or_si256(m, equal);  // all ones: -1, below all keys
    }
    if (count >= k) return Lane<T>::first(top) - 1;
  }
}

#else

template <class T>
inline Key<T> group_bound(const T* values, std::size_t size, std::size_t k) {
  Key<T> maxima[kGroups<T>] = {};
  for (std::size_t i = 0; i < size; i += kGroups<T>)
    for (std::size_t g = 0; g < kGroups<T>; ++g)
      maxima[g] = std::max(maxima[g], key(values[i + g]));
  std::nth_element(maxima, maxima + (k - 1), maxima + kGroups<T>, std::greater<>());
  return maxima[k - 1] - 1;
}

#endif

}  // namespace
}  // namespace sparcml
