#include "kernels/natural/generic.h"
#include "kernels/vectors.h"

namespace sparcml::avx2 {
namespace {

// Returns the exponents of 8 values, and their signs as 8 bits.
inline __m256i exponents(const float* v, Random& random, unsigned* signs) {
  const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(v));
  const __m256i size = _mm256_and_si256(x, _mm256_set1_epi32(0x7FFFFFFF));
  const __m256i nan =
      _mm256_cmpgt_epi32(size, _mm256_set1_epi32(static_cast<int>(kInfiniteBits)));
  const __m256i carried = _mm256_add_epi32(size, _mm256_srli_epi32(random.next8(), 9));
  const __m256i exponent = _mm256_andnot_si256(nan, _mm256_srli_epi32(carried, 23));
  const __m256i zero = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
  const __m256i negative = _mm256_or_si256(nan, _mm256_andnot_si256(zero, x));
  *signs = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(negative)));
  return exponent;
}

template <bool past_cache>
std::size_t decode(const std::uint8_t* code, std::size_t n, float* values) {
  const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256 nan = _mm256_set1_ps(kNaN);
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i exponent =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(code + i)));
    const __m256i signs = _mm256_set1_epi32(code[n + i / 8]);
    const __m256i negative = _mm256_cmpeq_epi32(_mm256_and_si256(signs, bit), bit);
    const __m256i top = _mm256_slli_epi32(negative, 31);
    const __m256i x = _mm256_or_si256(_mm256_slli_epi32(exponent, 23), top);
    const __m256i none = _mm256_cmpeq_epi32(x, _mm256_set1_epi32(INT32_MIN));
    store<past_cache>(values + i,
                      _mm256_blendv_ps(_mm256_castsi256_ps(x), nan, _mm256_castsi256_ps(none)));
  }
  return i;
}

}  // namespace

void to_natural(const float* values, std::size_t n, std::uint64_t seed, std::uint8_t* code) {
  Random random(seed, 0);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    __m256i part[4];
    std::uint32_t signs = 0;
    for (unsigned k = 0; k < 4; ++k) {
      unsigned eight;
      part[k] = exponents(values + i + 8 * k, random, &eight);
      signs |= eight << (8 * k);
    }
    const __m256i all = _mm256_packus_epi16(_mm256_packs_epi32(part[0], part[1]),
                                            _mm256_packs_epi32(part[2], part[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(code + i),
                        _mm256_permutevar8x32_epi32(all, order));
    std::memcpy(code + n + i / 8, &signs, 4);
  }
  rest_to_natural(values, i, n, random, code);
}

void from_natural(const std::uint8_t* code, std::size_t n, float* values) {
  std::size_t done;
  if (past_caches(values, n)) {
    done = decode<true>(code, n, values);
    _mm_sfence();
  } else {
    done = decode<false>(code, n, values);
  }
  rest_from_natural(code, done, n, values);
}

}  // namespace sparcml::avx2
