#include <immintrin.h>

#include "kernels/compact/generic.h"
#include "kernels/ones.h"

namespace sparcml::avx2 {
namespace {

struct Vector {
  template <bool bitwise, class T>
  static std::uint64_t differs(const T* values, T fill) {
    constexpr int lanes = 32 / sizeof(T);
    std::uint64_t all = 0;
    for (int k = 0; k < 64; k += lanes)
      all |= static_cast<std::uint64_t>(some<bitwise>(values + k, fill)) << k;
    return all;
  }

  static void pack(const float* values, std::uint64_t found, float* out) {
    for (int k = 0; k < 64; k += 8, found >>= 8) {
      const auto* lanes = reinterpret_cast<const __m128i*>(byte_ones[found & 0xff].data());
      const __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64(lanes));
      const __m256 kept = _mm256_permutevar8x32_ps(_mm256_loadu_ps(values + k), order);
      _mm256_storeu_ps(out, kept);
      out += __builtin_popcountll(found & 0xff);
    }
  }

  static void pack(const double* values, std::uint64_t found, double* out) {
    pack_exactly(values, found, out);
  }

 private:
  template <bool bitwise>
  static unsigned some(const float* values, float fill) {
    const __m256 x = _mm256_loadu_ps(values), f = _mm256_set1_ps(fill);
    if (!bitwise) return _mm256_movemask_ps(_mm256_cmp_ps(x, f, _CMP_NEQ_UQ));
    const __m256i same = _mm256_cmpeq_epi32(_mm256_castps_si256(x), _mm256_castps_si256(f));
    return ~_mm256_movemask_ps(_mm256_castsi256_ps(same)) & 0xff;
  }

  template <bool bitwise>
  static unsigned some(const double* values, double fill) {
    const __m256d x = _mm256_loadu_pd(values), f = _mm256_set1_pd(fill);
    if (!bitwise) return _mm256_movemask_pd(_mm256_cmp_pd(x, f, _CMP_NEQ_UQ));
    const __m256i same = _mm256_cmpeq_epi64(_mm256_castpd_si256(x), _mm256_castpd_si256(f));
    return ~_mm256_movemask_pd(_mm256_castsi256_pd(same)) & 0xf;
  }
};

}  // namespace

template <class T>
std::size_t compact(Dense<T> dense, std::size_t limit, std::uint32_t* oi, T* ov) {
  return compact_any<Vector>(dense, limit, oi, ov);
}

template <class T>
std::size_t count_nonfill(Dense<T> dense) {
  return count_any<Vector>(dense);
}

template <class T>
std::size_t bitmap_compact(Dense<T> dense, std::size_t limit, std::uint8_t* bitmap, T* ov) {
  return squeeze_any<Vector>(dense, limit, bitmap, ov);
}

SPARCML_FOR_REALS(compact);
SPARCML_FOR_REALS(count_nonfill);
SPARCML_FOR_REALS(bitmap_compact);

}  // namespace sparcml::avx2
