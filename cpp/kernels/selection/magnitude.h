// Magnitudes as integer keys, and masks of the values above a bound.
//
// op.h explains the anonymous namespace.
#pragma once

#include "kernels/selection/selection.h"
#include "kernels/spill.h"

namespace sparcml {
namespace {

template <class T>
constexpr Key<T> kAll = -1;
template <class T>
constexpr Key<T> kNone = std::numeric_limits<Key<T>>::max();

template <class T>
inline Key<T> key(T x) {
  return static_cast<Key<T>>(bits(x) & Bits<T>(kNone<T>));
}

#ifdef SPARCML_AVX2

inline unsigned some_above(__m256 x, std::int32_t bound) {
  const __m256i magnitude = _mm256_set1_epi32(kNone<float>);
  const __m256i keys = _mm256_and_si256(_mm256_castps_si256(x), magnitude);
  const __m256i above = _mm256_cmpgt_epi32(keys, _mm256_set1_epi32(bound));
  return _mm256_movemask_ps(_mm256_castsi256_ps(above));
}

inline unsigned some_above(__m256d x, std::int64_t bound) {
  const __m256i magnitude = _mm256_set1_epi64x(kNone<double>);
  const __m256i keys = _mm256_and_si256(_mm256_castpd_si256(x), magnitude);
  const __m256i above = _mm256_cmpgt_epi64(keys, _mm256_set1_epi64x(bound));
  return _mm256_movemask_pd(_mm256_castsi256_pd(above));
}

inline __m256 load(const float* x) { return _mm256_loadu_ps(x); }
inline __m256d load(const double* x) { return _mm256_loadu_pd(x); }

// Returns one bit for each of 64 values.
template <class T>
inline std::uint64_t word_above(const T* values, Key<T> bound) {
  constexpr int lanes = 32 / sizeof(T);
  std::uint64_t all = 0;
  for (int k = 0; k < 64; k += lanes)
    all |= static_cast<std::uint64_t>(some_above(load(values + k), bound)) << k;
  return all;
}

#else

// Compares into 64 bytes, which vectorises, then packs eight of them at a time into bits.
template <class T>
inline std::uint64_t word_above(const T* values, Key<T> bound) {
  std::uint8_t above[64];
  for (int k = 0; k < 64; ++k) above[k] = key(values[k]) > bound;
  std::uint64_t all = 0;
  for (int k = 0; k < 8; ++k)
    all |= (load64(above + 8 * k) * 0x0102040810204080ull >> 56) << 8 * k;
  return all;
}

#endif

// Returns the same for the last values, which are fewer than 64.
template <class T>
inline std::uint64_t tail_above(const T* values, std::size_t size, Key<T> bound) {
  std::uint64_t all = 0;
  for (std::size_t k = 0; k < size; ++k) all |= std::uint64_t(key(values[k]) > bound) << k;
  return all;
}

// A vector as the scans read it, word by word.
template <class T>
struct Vector {
  const T* values;

  std::uint64_t word(std::size_t start, Key<T> bound) const {
    return word_above(values + start, bound);
  }
  std::uint64_t tail(std::size_t start, std::size_t size, Key<T> bound) const {
    return tail_above(values + start, size, bound);
  }
};

}  // namespace
}  // namespace sparcml
