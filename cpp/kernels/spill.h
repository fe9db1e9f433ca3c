// Entries out of a word of 64 values, of which a mask says which are wanted.
//
// The anonymous namespace is on purpose: see op.h.
#pragma once

#include "kernels/ones.h"

namespace sparcml {
namespace {

constexpr std::size_t kWord = 64;

// Writes what a full word found, `step` entries at a time without asking whether there are any:
// a loop that ends after each entry would be mispredicted at every other word.
template <std::size_t step, class T>
inline void spill(const T* values, std::uint32_t start, std::uint64_t found, std::size_t more,
                  std::uint32_t* oi, T* ov) {
  for (std::size_t o = 0; o == 0 || o < more; o += step) {
    for (std::size_t k = 0; k < step; ++k) {
      const int at = __builtin_ctzll(found | 1ull << 63);
      oi[o + k] = start + at;
      ov[o + k] = values[at];
      found &= found - 1;
    }
  }
}

template <class T>
inline void spill_exactly(const T* values, std::uint32_t start, std::uint64_t found,
                          std::uint32_t* oi, T* ov) {
  for (; found; found &= found - 1) {
    const int at = __builtin_ctzll(found);
    *oi++ = start + at;
    *ov++ = values[at];
  }
}

template <class T>
inline void copy_word(const T* values, std::uint32_t start, std::uint32_t* oi, T* ov) {
  for (std::size_t k = 0; k < kWord; ++k) oi[k] = start + static_cast<std::uint32_t>(k);
  std::memcpy(ov, values, kWord * sizeof(T));
}

#ifdef __AVX2__
// Eight values at a time, without a branch.
inline void spill_many(const float* values, std::uint32_t start, std::uint64_t found,
                       std::size_t, std::uint32_t* oi, float* ov) {
  __m256i at = _mm256_set1_epi32(static_cast<int>(start));
  for (int k = 0; k < 64; k += 8, found >>= 8) {
    const auto* row = reinterpret_cast<const __m128i*>(byte_ones[found & 0xff].data());
    const __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64(row));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(oi), _mm256_add_epi32(order, at));
    _mm256_storeu_ps(ov, _mm256_permutevar8x32_ps(_mm256_loadu_ps(values + k), order));
    const auto count = _mm_popcnt_u32(found & 0xff);
    oi += count, ov += count;
    at = _mm256_add_epi32(at, _mm256_set1_epi32(8));
  }
}

#endif

template <class T>
inline void spill_many(const T* values, std::uint32_t start, std::uint64_t found,
                       std::size_t more, std::uint32_t* oi, T* ov) {
  if (more == kWord)
    copy_word(values, start, oi, ov);
  else
    spill<8>(values, start, found, more, oi, ov);
}

// Writes what a full word found, and maybe anything to the 8 entries after it.
template <class T>
inline void spill_word(const T* values, std::uint32_t start, std::uint64_t found,
                       std::size_t more, std::uint32_t* oi, T* ov) {
  if (more <= 2)
    spill<2>(values, start, found, 2, oi, ov);
  else if (more <= 4)
    spill<4>(values, start, found, 4, oi, ov);
  else
    spill_many(values, start, found, more, oi, ov);
}

}  // namespace
}  // namespace sparcml
