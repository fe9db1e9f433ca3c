#include <immintrin.h>

#include "linear/models/generic.h"

namespace sparcml::linear::avx2 {
namespace {

// Returns a mask of the first `count` of eight lanes.
inline __m256i first(std::size_t count) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lanes);
}

struct Eight {
  __m256i columns, which;  // mask of the lanes that are present
};

// Loads up to eight columns below a limit.
inline Eight next(const std::uint32_t* at, const std::uint32_t* end, std::uint64_t limit) {
  const __m256i left = first(std::min<std::size_t>(8, static_cast<std::size_t>(end - at)));
  const __m256i columns = _mm256_maskload_epi32(reinterpret_cast<const int*>(at), left);
  const std::uint64_t most = std::min<std::uint64_t>(limit - 1, UINT32_MAX);
  const __m256i least = _mm256_min_epu32(columns, _mm256_set1_epi32(static_cast<int>(most)));
  return {columns, _mm256_and_si256(_mm256_cmpeq_epi32(columns, least), left)};
}

inline std::size_t size(__m256i which) {
  return _mm_popcnt_u32(static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(which))));
}

inline __m256d low(__m256 x) { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
inline __m256d high(__m256 x) { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }
inline __m256i low(__m256i x) { return _mm256_cvtepi32_epi64(_mm256_castsi256_si128(x)); }
inline __m256i high(__m256i x) { return _mm256_cvtepi32_epi64(_mm256_extracti128_si256(x, 1)); }

// Adds value * weight in eight lanes; masked lanes are zero and read nothing.
struct Lanes {
  __m256d even = _mm256_setzero_pd(), odd = _mm256_setzero_pd();  // lanes 0 to 3, 4 to 7

  void add(const float* weights, __m256i at, const float* values, __m256i wanted) {
    const __m256 mask = _mm256_castsi256_ps(wanted);
    add(_mm256_mask_i32gather_ps(_mm256_setzero_ps(), weights, at, mask, 4),
        _mm256_maskload_ps(values, wanted));
  }

  void add(const float* weights, __m256i at, const float* values) {
    add(_mm256_i32gather_ps(weights, at, 4), _mm256_loadu_ps(values));
  }

  void add(const double* weights, __m256i at, const double* values, __m256i wanted) {
    const __m256i a = low(wanted), b = high(wanted);
    add(gather(weights, _mm256_castsi256_si128(at), a), _mm256_maskload_pd(values, a),
        gather(weights, _mm256_extracti128_si256(at, 1), b), _mm256_maskload_pd(values + 4, b));
  }

  void add(const double* weights, __m256i at, const double* values) {
    const __m256i all = _mm256_set1_epi64x(-1);
    add(gather(weights, _mm256_castsi256_si128(at), all), _mm256_loadu_pd(values),
        gather(weights, _mm256_extracti128_si256(at, 1), all), _mm256_loadu_pd(values + 4));
  }

  double sum() const {
    const __m256d four = _mm256_add_pd(even, odd);
    const __m128d two =
        _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two));
  }

 private:
  void add(__m256 w, __m256 x) { add(low(w), low(x), high(w), high(x)); }

  static __m256d gather(const double* weights, __m128i at, __m256i wanted) {
    const __m256d mask = _mm256_castsi256_pd(wanted);
    return _mm256_mask_i32gather_pd(_mm256_setzero_pd(), weights, at, mask, 8);
  }

  void add(__m256d w0, __m256d x0, __m256d w1, __m256d x1) {
    even = _mm256_add_pd(even, _mm256_mul_pd(x0, w0));
    odd = _mm256_add_pd(odd, _mm256_mul_pd(x1, w1));
  }
};

struct Vector {
  static std::size_t below(const std::uint32_t* at, const std::uint32_t* end,
                           std::uint64_t limit) {
    const std::uint32_t* stop = at;
    while (stop + 8 <= end && stop[7] < limit) stop += 8;
    return static_cast<std::size_t>(stop - at) + size(next(stop, end, limit).which);
  }

  static std::uint64_t differs(const float* values) {
    std::uint64_t bits = 0;
    for (int k = 0; k < 64; k += 8) {
      const __m256 x = _mm256_loadu_ps(values + k);
      const __m256 some = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NEQ_UQ);
      bits |= static_cast<std::uint64_t>(_mm256_movemask_ps(some)) << k;
    }
    return bits;
  }

  static std::uint64_t differs(const double* values) {
    std::uint64_t bits = 0;
    for (int k = 0; k < 64; k += 4) {
      const __m256d x = _mm256_loadu_pd(values + k);
      const __m256d some = _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_NEQ_UQ);
      bits |= static_cast<std::uint64_t>(_mm256_movemask_pd(some)) << k;
    }
    return bits;
  }

  template <class T>
  static void clear(T* values) {
    for (std::size_t k = 0; k < kWord; k += 32 / sizeof(T))
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(values + k), _mm256_setzero_si256());
  }

  // Gathers use signed offsets, so column - base must be below 2^31.
  template <class T>
  static double dot(const T* weights, const Cursor<T>& c, std::uint64_t base,
                    std::uint64_t limit, std::size_t& count) {
    const __m256i from = _mm256_set1_epi32(static_cast<int>(base));
    const std::uint32_t* at = c.at;
    const T* value = c.value;
    weights += base;
    Lanes lanes;
    for (; at + 8 <= c.end && at[7] < limit; at += 8, value += 8) {
      const __m256i columns = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
      lanes.add(weights, _mm256_sub_epi32(columns, from), value);
    }
    const Eight rest = next(at, c.end, limit);
    lanes.add(weights, _mm256_sub_epi32(rest.columns, from), value, rest.which);
    count = static_cast<std::size_t>(at - c.at) + size(rest.which);
    return lanes.sum();
  }
};

}  // namespace

template <class T>
Total gradient(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
               double share, const Model<T>& model, std::uint32_t* indices, T* values) {
  return gradient_any<Vector>(rows, chosen, count, loss, share, model, indices, values);
}

template <class T>
Total slopes(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
             double share, const Model<T>& model, double* out) {
  return slopes_any<Vector>(rows, chosen, count, loss, share, model, out);
}

template <class T>
void combine_each(const Rows<T>& rows, const std::int64_t* chosen, const double* slopes,
                  std::size_t count, std::size_t features, const Take<T>& take) {
  combine_each_any<Vector>(rows, chosen, slopes, count, features, take);
}

#define SPARCML_HALVES(T)                                                                     \
  template Total slopes(const Rows<T>&, const std::int64_t*, std::size_t, Loss, double,       \
                        const Model<T>&, double*);                                            \
  template void combine_each(const Rows<T>&, const std::int64_t*, const double*, std::size_t, \
                             std::size_t, const Take<T>&);
SPARCML_HALVES(float)
SPARCML_HALVES(double)

template Total gradient(const Rows<float>&, const std::int64_t*, std::size_t, Loss, double,
                        const Model<float>&, std::uint32_t*, float*);
template Total gradient(const Rows<double>&, const std::int64_t*, std::size_t, Loss, double,
                        const Model<double>&, std::uint32_t*, double*);

}  // namespace sparcml::linear::avx2
