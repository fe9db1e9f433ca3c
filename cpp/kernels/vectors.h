// Helpers of the AVX2 files that encode values.
//
// op.h explains the anonymous namespace.
#pragma once

#include <immintrin.h>

#include "kernels/buckets.h"

namespace sparcml {
namespace {

// A large result is not read soon, and writing it past the caches halves the memory traffic. It
// and all its segments must then start at a multiple of 16 bytes.
template <class T>
inline bool past_caches(const T* values, std::size_t n) {
  return reinterpret_cast<std::uintptr_t>(values) % 16 == 0 && n * sizeof(T) >= 1 << 20;
}

template <bool past_cache>
inline void store(float* to, __m256 x) {
  if (past_cache) {
    _mm_stream_ps(to, _mm256_castps256_ps128(x));
    _mm_stream_ps(to + 4, _mm256_extractf128_ps(x, 1));
  } else {
    _mm256_storeu_ps(to, x);
  }
}

// Converts four vectors of integers to 32 bytes, with saturation.
inline __m256i to_bytes(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i all = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
  return _mm256_permutevar8x32_epi32(all, order);
}

// Writes all codes of a segment by coder.next(), which encodes 32 values.
template <class Coder>
inline void all_codes(const float* v, std::size_t n, Coder coder, std::int8_t* codes) {
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + i), coder.next(v + i));
  if (i == n) return;
  float rest[32] = {};
  alignas(32) std::int8_t last[32];
  std::memcpy(rest, v + i, 4 * (n - i));
  _mm256_store_si256(reinterpret_cast<__m256i*>(last), coder.next(rest));
  std::memcpy(codes + i, last, n - i);
}

// Shifts code i to the bottom of lane i, where its low three bits index both halves of the
// table, and its highest bit to the top, where it selects the half.
inline __m256 look_up4(const std::uint8_t* packed, __m256 low, __m256 high) {
  std::int32_t word;
  std::memcpy(&word, packed, 4);
  const __m256i all = _mm256_set1_epi32(word);
  const __m256i at = _mm256_srlv_epi32(all, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
  const __m256i top = _mm256_sllv_epi32(all, _mm256_setr_epi32(28, 24, 20, 16, 12, 8, 4, 0));
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, at), _mm256_permutevar8x32_ps(high, at),
                          _mm256_castsi256_ps(top));
}

// The table holds its four values twice, so that the third bit of an index does not matter.
inline __m256 look_up2(const std::uint8_t* packed, __m256 table) {
  std::uint16_t word;
  std::memcpy(&word, packed, 2);
  const __m256i at =
      _mm256_srlv_epi32(_mm256_set1_epi32(word), _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
  return _mm256_permutevar8x32_ps(table, at);
}

// Decodes packed codes of 2 or 4 bits with a table of all values.
template <bool past_cache, class Values>
inline void look_up(const std::uint8_t* packed, std::size_t n, unsigned bits,
                    const Values& bucket, float* v) {
  float all[16];
  const int sign = 1 << (bits - 1);
  for (int code = 0; code < 16; ++code)
    all[code] = bucket.of(((code & (2 * sign - 1)) ^ sign) - sign);
  const __m256 low = _mm256_loadu_ps(all), high = _mm256_loadu_ps(all + 8);
  std::size_t i = 0;
  if (bits == 4)
    for (; i + 8 <= n; i += 8) store<past_cache>(v + i, look_up4(packed + i / 2, low, high));
  else
    for (; i + 8 <= n; i += 8) store<past_cache>(v + i, look_up2(packed + i / 4, low));
  for (; i < n; ++i) {
    const std::size_t bit = i * bits;
    v[i] = all[packed[bit / 8] >> bit % 8 & ((1u << bits) - 1)];
  }
}

}  // namespace
}  // namespace sparcml
