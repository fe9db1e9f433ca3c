// Sums of squares in one order, alone and together with a sum of two vectors.
//
// The anonymous namespace is on purpose: see op.h.
#pragma once

#include "kernels/select/magnitude.h"

namespace sparcml {
namespace {

constexpr std::size_t kSquares = 2048;  // values whose squares are summed at a time
constexpr std::size_t kLanes = 8;

// The lanes: value i of a block belongs to lane i mod 8.
struct Lanes {
  double sum[kLanes] = {};

  template <class T>
  void add(std::size_t i, T x) {
    const double wide = x;
    sum[i % kLanes] += wide * wide;
  }

  double total() const {
    double half[4];
    for (int i = 0; i < 4; ++i) half[i] = sum[i] + sum[i + 4];
    return (half[0] + half[2]) + (half[1] + half[3]);
  }
};

#ifdef __AVX2__

struct WideLanes {
  __m256d low = _mm256_setzero_pd(), high = _mm256_setzero_pd();

  void add(__m256d a, __m256d b) {
    low = _mm256_add_pd(low, _mm256_mul_pd(a, a));
    high = _mm256_add_pd(high, _mm256_mul_pd(b, b));
  }
  void add(__m256 x) {
    add(_mm256_cvtps_pd(_mm256_castps256_ps128(x)),
        _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
  }
  Lanes lanes() const {
    Lanes lanes;
    _mm256_storeu_pd(lanes.sum, low);
    _mm256_storeu_pd(lanes.sum + 4, high);
    return lanes;
  }
};

inline __m256 canonical(__m256 x) {
  const __m256 nan = _mm256_set1_ps(std::numeric_limits<float>::quiet_NaN());
  return _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

inline __m256d canonical(__m256d x) {
  const __m256d nan = _mm256_set1_pd(std::numeric_limits<double>::quiet_NaN());
  return _mm256_blendv_pd(x, nan, _mm256_cmp_pd(x, x, _CMP_UNORD_Q));
}

// Eight values at a time; returns how far it came.
inline std::size_t square_wide(const float* x, std::size_t size, WideLanes& lanes) {
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) lanes.add(_mm256_loadu_ps(x + i));
  return i;
}

inline std::size_t square_wide(const double* x, std::size_t size, WideLanes& lanes) {
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes)
    lanes.add(_mm256_loadu_pd(x + i), _mm256_loadu_pd(x + i + 4));
  return i;
}

inline std::size_t owe_wide(const float* r, const float* g, float* out, std::size_t size,
                            WideLanes& lanes) {
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const __m256 sum = canonical(_mm256_add_ps(_mm256_loadu_ps(r + i), _mm256_loadu_ps(g + i)));
    _mm256_storeu_ps(out + i, sum);
    lanes.add(sum);
  }
  return i;
}

inline std::size_t owe_wide(const double* r, const double* g, double* out, std::size_t size,
                            WideLanes& lanes) {
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const __m256d a = _mm256_add_pd(_mm256_loadu_pd(r + i), _mm256_loadu_pd(g + i));
    const __m256d b = _mm256_add_pd(_mm256_loadu_pd(r + i + 4), _mm256_loadu_pd(g + i + 4));
    _mm256_storeu_pd(out + i, canonical(a));
    _mm256_storeu_pd(out + i + 4, canonical(b));
    lanes.add(a, b);
  }
  return i;
}

template <class T>
inline double squares(const T* x, std::size_t size) {
  WideLanes wide;
  std::size_t i = square_wide(x, size, wide);
  Lanes lanes = wide.lanes();
  for (; i < size; ++i) lanes.add(i, x[i]);
  return lanes.total();
}

template <class T>
inline double owe_block(const T* r, const T* g, T* out, std::size_t size) {
  WideLanes wide;
  std::size_t i = owe_wide(r, g, out, size, wide);
  Lanes lanes = wide.lanes();
  for (; i < size; ++i) lanes.add(i, out[i] = canonical(r[i] + g[i]));
  return lanes.total();
}

#else

template <class T>
inline double squares(const T* x, std::size_t size) {
  Lanes lanes;
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes)
    for (std::size_t k = 0; k < kLanes; ++k) lanes.add(k, x[i + k]);
  for (; i < size; ++i) lanes.add(i, x[i]);
  return lanes.total();
}

template <class T>
inline double owe_block(const T* r, const T* g, T* out, std::size_t size) {
  SPARCML_IVDEP
  for (std::size_t i = 0; i < size; ++i) out[i] = canonical(r[i] + g[i]);
  return squares(out, size);
}

#endif

// Writes residual + gradient from `done` until at least `goal`, in whole blocks.
template <class T>
struct Owe {
  Owing<T> owing;
  std::size_t done = 0;
  double squares = 0;

  void until(std::size_t goal) {
    while (done < goal) {
      const std::size_t size = std::min(kSquares, owing.size - done);
      squares +=
          owe_block(owing.residual + done, owing.gradient + done, owing.out + done, size);
      done += size;
    }
  }
};

}  // namespace
}  // namespace sparcml
