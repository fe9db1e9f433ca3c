// Writes the entries of a word of 64 values that a mask selects.
//
// op.h explains the anonymous namespace.
#pragma once

#include "kernels/ones.h"

namespace sparcml {
namespace {

constexpr std::size_t kWord = 64;

// Writes the selected entries, `step` at a time without testing each: a loop that may end after
// each entry would be mispredicted at every other word.
template <std::size_t step, class T>
inline void spill(const T* values, std::uint32_t start, std::uint64_t mask, std::size_t count,
                  std::uint32_t* oi, T* ov) {
  for (std::size_t o = 0; o == 0 || o < count; o += step) {
    for (std::size_t k = 0; k < step; ++k) {
      const int at = __builtin_ctzll(mask | 1ull << 63);
      oi[o + k] = start + at;
      ov[o + k] = values[at];
      mask &= mask - 1;
    }
  }
}

template <class T>
inline void spill_exactly(const T* values, std::uint32_t start, std::uint64_t mask,
                          std::uint32_t* oi, T* ov) {
  for (; mask; mask &= mask - 1) {
    const int at = __builtin_ctzll(mask);
    *oi++ = start + at;
    *ov++ = values[at];
  }
}

template <class T>
inline void copy_word(const T* values, std::uint32_t start, std::uint32_t* oi, T* ov) {
  for (std::size_t k = 0; k < kWord; ++k) oi[k] = start + static_cast<std::uint32_t>(k);
  std::memcpy(ov, values, kWord * sizeof(T));
}

#ifdef SPARCML_AVX2
// Handles eight values at a time without a branch.
inline void spill_many(const float* values, std::uint32_t start, std::uint64_t mask,
                       std::size_t, std::uint32_t* oi, float* ov) {
  __m256i at = _mm256_set1_epi32(static_cast<int>(start));
  for (int k = 0; k < 64; k += 8, mask >>= 8) {
    const auto* row = reinterpret_cast<const __m128i*>(byte_ones[mask & 0xff].data());
    const __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64(row));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(oi), _mm256_add_epi32(order, at));
    _mm256_storeu_ps(ov, _mm256_permutevar8x32_ps(_mm256_loadu_ps(values + k), order));
    const auto count = _mm_popcnt_u32(mask & 0xff);
    oi += count, ov += count;
    at = _mm256_add_epi32(at, _mm256_set1_epi32(8));
  }
}

#endif

template <class T>
inline void spill_many(const T* values, std::uint32_t start, std::uint64_t mask,
                       std::size_t count, std::uint32_t* oi, T* ov) {
  if (count == kWord)
    copy_word(values, start, oi, ov);
  else
    spill<8>(values, start, mask, count, oi, ov);
}

// Writes the selected entries of a full word; may overwrite the 8 entries after them.
template <class T>
inline void spill_word(const T* values, std::uint32_t start, std::uint64_t mask,
                       std::size_t count, std::uint32_t* oi, T* ov) {
  if (count <= 2)
    spill<2>(values, start, mask, 2, oi, ov);
  else if (count <= 4)
    spill<4>(values, start, mask, 4, oi, ov);
  else
    spill_many(values, start, mask, count, oi, ov);
}

}  // namespace
}  // namespace sparcml
