// Magnitudes as integers, and which of 64 are above a bound.
//
// The anonymous namespace is on purpose: see op.h.
#pragma once

#include "kernels/select/select.h"
#include "kernels/spill.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace sparcml {
namespace {

template <class T>
constexpr Rank<T> kAll = -1;
template <class T>
constexpr Rank<T> kNone = std::numeric_limits<Rank<T>>::max();

template <class T>
inline Rank<T> rank(T x) {
  return static_cast<Rank<T>>(bits(x) & Bits<T>(kNone<T>));
}

#ifdef __AVX2__

inline unsigned some_above(__m256 x, std::int32_t bound) {
  const __m256i magnitude = _mm256_set1_epi32(kNone<float>);
  const __m256i ranks = _mm256_and_si256(_mm256_castps_si256(x), magnitude);
  const __m256i above = _mm256_cmpgt_epi32(ranks, _mm256_set1_epi32(bound));
  return _mm256_movemask_ps(_mm256_castsi256_ps(above));
}

inline unsigned some_above(__m256d x, std::int64_t bound) {
  const __m256i magnitude = _mm256_set1_epi64x(kNone<double>);
  const __m256i ranks = _mm256_and_si256(_mm256_castpd_si256(x), magnitude);
  const __m256i above = _mm256_cmpgt_epi64(ranks, _mm256_set1_epi64x(bound));
  return _mm256_movemask_pd(_mm256_castsi256_pd(above));
}

inline __m256 load(const float* x) { return _mm256_loadu_ps(x); }
inline __m256d load(const double* x) { return _mm256_loadu_pd(x); }

// One bit for each of 64 values.
template <class T>
inline std::uint64_t word_above(const T* values, Rank<T> bound) {
  constexpr int lanes = 32 / sizeof(T);
  std::uint64_t all = 0;
  for (int k = 0; k < 64; k += lanes)
    all |= static_cast<std::uint64_t>(some_above(load(values + k), bound)) << k;
  return all;
}

#else

// First the 64 answers as bytes, which vectorises, then eight of them at a time to bits.
template <class T>
inline std::uint64_t word_above(const T* values, Rank<T> bound) {
  std::uint8_t found[64];
  for (int k = 0; k < 64; ++k) found[k] = rank(values[k]) > bound;
  std::uint64_t all = 0;
  for (int k = 0; k < 8; ++k)
    all |= (load64(found + 8 * k) * 0x0102040810204080ull >> 56) << 8 * k;
  return all;
}

#endif

// The same for the last values, of which there are fewer.
template <class T>
inline std::uint64_t tail_above(const T* values, std::size_t size, Rank<T> bound) {
  std::uint64_t all = 0;
  for (std::size_t k = 0; k < size; ++k) all |= std::uint64_t(rank(values[k]) > bound) << k;
  return all;
}

// A vector as the scans take it: a word after the other.
template <class T>
struct Whole {
  const T* values;

  std::uint64_t word(std::size_t start, Rank<T> bound) const {
    return word_above(values + start, bound);
  }
  std::uint64_t tail(std::size_t start, std::size_t size, Rank<T> bound) const {
    return tail_above(values + start, size, bound);
  }
};

}  // namespace
}  // namespace sparcml
