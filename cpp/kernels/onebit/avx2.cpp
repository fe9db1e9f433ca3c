#include <immintrin.h>

#include "kernels/onebit/generic.h"

namespace sparcml {
namespace {

// Eight sums in double precision: value i is added to lane i mod 8.
class Lanes {
 public:
  void add(__m256 x) {
    first_ = _mm256_add_pd(first_, _mm256_cvtps_pd(_mm256_castps256_ps128(x)));
    second_ = _mm256_add_pd(second_, _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
  }

  // |x - from|, in double precision.
  void add_distance(__m256 x, __m256d from) {
    const __m256d sign = _mm256_set1_pd(-0.0);
    const __m256d a = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    const __m256d b = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
    first_ = _mm256_add_pd(first_, _mm256_andnot_pd(sign, _mm256_sub_pd(a, from)));
    second_ = _mm256_add_pd(second_, _mm256_andnot_pd(sign, _mm256_sub_pd(b, from)));
  }

  void store(double* lanes) const {
    _mm256_storeu_pd(lanes, first_);
    _mm256_storeu_pd(lanes + 4, second_);
  }

  double sum() const {
    double lanes[8];
    store(lanes);
    return tree(lanes);
  }

 private:
  __m256d first_{}, second_{};
};

struct Loops {
  class Classes {
   public:
    std::uint32_t operator()(const float* v) {
      std::uint32_t group = 0;
      for (unsigned j = 0; j < kGroup; j += 8) {
        const __m256 x = _mm256_loadu_ps(v + j);
        const __m256 high = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GE_OQ);
        high_.add(_mm256_and_ps(high, x));
        low_.add(_mm256_andnot_ps(high, x));
        group |= static_cast<std::uint32_t>(_mm256_movemask_ps(high)) << j;
      }
      return group;
    }
    double low() const { return low_.sum(); }
    double high() const { return high_.sum(); }

   private:
    Lanes low_, high_;
  };

  class Distances {
   public:
    explicit Distances(float from) : from_(_mm256_set1_ps(from)), wide_(_mm256_set1_pd(from)) {}
    std::uint32_t operator()(const float* v) {
      std::uint32_t group = 0;
      for (unsigned j = 0; j < kGroup; j += 8) {
        const __m256 x = _mm256_loadu_ps(v + j);
        sum_.add_distance(x, wide_);
        const __m256 high = _mm256_cmp_ps(x, from_, _CMP_GE_OQ);
        group |= static_cast<std::uint32_t>(_mm256_movemask_ps(high)) << j;
      }
      return group;
    }
    double sum() const { return sum_.sum(); }

   private:
    __m256 from_;
    __m256d wide_;
    Lanes sum_;
  };

  static double sum(const float* v, std::size_t n) {
    Lanes all;
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) all.add(_mm256_loadu_ps(v + i));
    double lanes[8];
    all.store(lanes);
    for (; i < n; ++i) lanes[i % 8] += v[i];
    return tree(lanes);
  }
};

class Choose {
 public:
  Choose(float low, float high) : low_(_mm256_set1_ps(low)), high_(_mm256_set1_ps(high)) {}

  void operator()(std::uint32_t bits, float* v) const {
    // Shifts bit j of each eight to the top of lane j, which a blend reads.
    const __m256i shifts = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    const __m256i all = _mm256_set1_epi32(static_cast<int>(bits));
    for (int j = 0; j < static_cast<int>(kGroup); j += 8) {
      const __m256i top =
          _mm256_sllv_epi32(all, _mm256_sub_epi32(shifts, _mm256_set1_epi32(j)));
      _mm256_storeu_ps(v + j, _mm256_blendv_ps(low_, high_, _mm256_castsi256_ps(top)));
    }
  }

 private:
  __m256 low_, high_;
};

}  // namespace

namespace avx2 {

void one_bit_zero(const float* v, std::size_t n, std::size_t bucket, float* levels,
                  std::uint8_t* bits) {
  all_zero<Loops>(v, n, bucket, levels, bits);
}

void one_bit_mean(const float* v, std::size_t n, std::size_t bucket, float* levels,
                  std::uint8_t* bits) {
  all_mean<Loops>(v, n, bucket, levels, bits);
}

void to_sign(const float* v, std::size_t n, std::size_t bucket, float* scales,
             std::uint8_t* bits) {
  all_signs<Loops>(v, n, bucket, scales, bits);
}

void from_bitplane(const float* levels, const std::uint8_t* bits, std::size_t n,
                   std::size_t bucket, float* v) {
  all_two_levels<Choose>(levels, bits, n, bucket, v);
}

}  // namespace avx2
}  // namespace sparcml
