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

// The same eight, in registers.
struct WideLanes {
  __m256d low, high;

  explicit WideLanes(const Lanes& lanes)
      : low(_mm256_loadu_pd(lanes.sum)), high(_mm256_loadu_pd(lanes.sum + 4)) {}

  void add(__m256d a, __m256d b) {
    low = _mm256_add_pd(low, _mm256_mul_pd(a, a));
    high = _mm256_add_pd(high, _mm256_mul_pd(b, b));
  }
  void add(__m256 x) {
    add(_mm256_cvtps_pd(_mm256_castps256_ps128(x)),
        _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
  }
  void store(Lanes& lanes) const {
    _mm256_storeu_pd(lanes.sum, low);
    _mm256_storeu_pd(lanes.sum + 4, high);
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

// out = r + g for eight values, and which of them are above the bound.
inline unsigned owe_eight(const float* r, const float* g, float* out, std::int32_t bound,
                          WideLanes& lanes) {
  const __m256 sum = canonical(_mm256_add_ps(load(r), load(g)));
  _mm256_storeu_ps(out, sum);
  lanes.add(sum);
  return some_above(sum, bound);
}

inline unsigned owe_eight(const double* r, const double* g, double* out, std::int64_t bound,
                          WideLanes& lanes) {
  const __m256d a = canonical(_mm256_add_pd(load(r), load(g)));
  const __m256d b = canonical(_mm256_add_pd(load(r + 4), load(g + 4)));
  _mm256_storeu_pd(out, a);
  _mm256_storeu_pd(out + 4, b);
  lanes.add(a, b);
  return some_above(a, bound) | some_above(b, bound) << 4;
}

template <class T>
inline double squares(const T* x, std::size_t size) {
  Lanes lanes;
  WideLanes wide(lanes);
  std::size_t i = square_wide(x, size, wide);
  wide.store(lanes);
  for (; i < size; ++i) lanes.add(i, x[i]);
  return lanes.total();
}

// out = r + g for 64 values, their squares into the lanes, and which are above the bound.
template <class T>
inline std::uint64_t owe_word(const T* r, const T* g, T* out, Rank<T> bound, Lanes& lanes) {
  WideLanes wide(lanes);
  std::uint64_t all = 0;
  for (std::size_t k = 0; k < kWord; k += kLanes)
    all |= std::uint64_t(owe_eight(r + k, g + k, out + k, bound, wide)) << k;
  wide.store(lanes);
  return all;
}

#else

template <class T>
inline void square_some(const T* x, std::size_t size, Lanes& lanes) {
  const std::size_t whole = size / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes)
    for (std::size_t k = 0; k < kLanes; ++k) lanes.add(k, x[i + k]);
  for (std::size_t i = whole; i < size; ++i) lanes.add(i, x[i]);
}

template <class T>
inline double squares(const T* x, std::size_t size) {
  Lanes lanes;
  square_some(x, size, lanes);
  return lanes.total();
}

template <class T>
inline std::uint64_t owe_word(const T* r, const T* g, T* out, Rank<T> bound, Lanes& lanes) {
  SPARCML_IVDEP
  for (std::size_t i = 0; i < kWord; ++i) out[i] = canonical(r[i] + g[i]);
  square_some(out, kWord, lanes);
  return word_above(out, bound);
}

#endif

// residual + gradient as a vector to be scanned, which is written on the way: each word once,
// from first to last.
template <class T>
class Owe {
 public:
  const T* values;

  explicit Owe(Owing<T> owing) : values(owing.out), owing_(owing) {}

  std::uint64_t word(std::size_t start, Rank<T> bound) {
    const std::uint64_t above = owe_word(owing_.residual + start, owing_.gradient + start,
                                         owing_.out + start, bound, lanes_);
    if ((start + kWord) % kSquares == 0) finish_block();
    return above;
  }

  std::uint64_t tail(std::size_t start, std::size_t size, Rank<T> bound) {
    const T *r = owing_.residual + start, *g = owing_.gradient + start;
    T* out = owing_.out + start;
    for (std::size_t i = 0; i < size; ++i) lanes_.add(i, out[i] = canonical(r[i] + g[i]));
    return tail_above(out, size, bound);
  }

  // Goes on in whole words until at least `goal`, without looking at what is written.
  void until(std::size_t goal) {
    for (; done_ < goal; done_ += kWord) {
      if (done_ + kWord <= owing_.size)
        word(done_, kNone<T>);
      else
        tail(done_, owing_.size - done_, kNone<T>);
    }
  }

  // Of all, after the last word.
  double squares() {
    finish_block();
    return squares_;
  }

 private:
  void finish_block() {
    squares_ += lanes_.total();
    lanes_ = Lanes();
  }

  Owing<T> owing_;
  std::size_t done_ = 0;
  double squares_ = 0;
  Lanes lanes_;
};

}  // namespace
}  // namespace sparcml
