#include <immintrin.h>

#include "kernels/expand/generic.h"
#include "kernels/ones.h"

namespace sparcml::avx2 {
namespace {

// Row b has the number of ones of byte b below each of its bits.
constexpr auto ones_below = [] {
  std::array<std::array<std::uint8_t, 8>, 256> rows{};
  for (unsigned b = 0; b < 256; ++b)
    for (unsigned bit = 0, count = 0; bit < 8; ++bit) {
      rows[b][bit] = static_cast<std::uint8_t>(count);
      count += b >> bit & 1;
    }
  return rows;
}();

constexpr std::size_t kLarge = 1 << 20;  // bytes

// A large result is not read soon, and writing it past the caches halves the memory traffic.
template <bool past_cache>
struct Vector {
  static void unpack(std::uint64_t word, const float* values, float fill, float* out) {
    const __m256 absent = _mm256_set1_ps(fill);
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    for (int k = 0; k < 64; k += 8, word >>= 8) {
      const auto byte = static_cast<std::uint8_t>(word);
      const auto* row = reinterpret_cast<const __m128i*>(ones_below[byte].data());
      const __m256i from = _mm256_cvtepu8_epi32(_mm_loadl_epi64(row));
      const __m256 spread = _mm256_permutevar8x32_ps(_mm256_loadu_ps(values), from);
      const __m256i there = _mm256_and_si256(_mm256_set1_epi32(byte), bit);
      const __m256 mask = _mm256_castsi256_ps(_mm256_cmpeq_epi32(there, bit));
      const __m256 found = _mm256_blendv_ps(absent, spread, mask);
      if (past_cache) {
        _mm_stream_ps(out + k, _mm256_castps256_ps128(found));
        _mm_stream_ps(out + k + 4, _mm256_extractf128_ps(found, 1));
      } else {
        _mm256_storeu_ps(out + k, found);
      }
      values += _mm_popcnt_u32(byte);
    }
  }

  static void unpack(std::uint64_t word, const double* values, double fill, double* out) {
    unpack_exactly(word, values, fill, out, 64);
  }
};

}  // namespace

template <class T>
const char* bitmap_expand(Plane<T> plane, T fill, T* out, std::size_t size) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(out) % 16 == 0;
  if (aligned && size * sizeof(T) >= kLarge) {
    const char* wrong = expand_any<Vector<true>>(plane, fill, out, size);
    _mm_sfence();
    return wrong;
  }
  return expand_any<Vector<false>>(plane, fill, out, size);
}

SPARCML_FOR_REALS(bitmap_expand);

std::size_t bitmap_ones(const std::uint8_t* bits, std::size_t words) {
  return count_ones(bits, words);
}

}  // namespace sparcml::avx2
