#include <immintrin.h>

#include "kernels/half/generic.h"

namespace sparcml::avx2 {

void to_half(const float* values, std::size_t n, std::uint16_t* out) {
  const __m256 nan = _mm256_set1_ps(std::bit_cast<float>(0x7FC00000));  // converts to 0x7e00
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 x = _mm256_loadu_ps(values + i);
    const __m256 clean = _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(clean, _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < n; ++i) out[i] = half_of(values[i]);
}

void from_half(const std::uint16_t* bits, std::size_t n, float* out) {
  const __m256 nan = _mm256_set1_ps(std::bit_cast<float>(0x7FC00000));
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 x =
        _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bits + i)));
    const __m256 clean = _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    _mm256_storeu_ps(out + i, clean);
  }
  for (; i < n; ++i) out[i] = float_of_half(bits[i]);
}

void to_bfloat(const float* values, std::size_t n, std::uint16_t* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = bfloat_of(values[i]);
}

void from_bfloat(const std::uint16_t* bits, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = float_of_bfloat(bits[i]);
}

}  // namespace sparcml::avx2
