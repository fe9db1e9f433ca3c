// Sums of squared_norm in one defined order, alone and fused with the sum of two vectors.
//
// op.h explains the anonymous namespace.
#pragma once

#include <vector>

#include "kernels/selection/parts.h"
#include "kernels/selection/terms.h"

namespace sparcml {
namespace {

constexpr std::size_t kLanes = 8;

// Partial sums: value i of a block is added to lane i mod 8.
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

#ifdef SPARCML_AVX2

// The same eight lanes in registers.
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

// Adds eight values at a time and returns the number of values added.
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

// Writes out = scale residual + term for the eight values at i and returns a mask of those
// above the bound.
template <class Term>
inline unsigned add_eight(ResidualInput<float> input, Term term, std::size_t i,
                          std::int32_t bound, WideLanes& lanes) {
  const __m256 scaled = _mm256_mul_ps(_mm256_set1_ps(input.scale), load(input.residual + i));
  const __m256 sum = canonical(_mm256_add_ps(scaled, term.wide(i)));
  _mm256_storeu_ps(input.out + i, sum);
  lanes.add(sum);
  return some_above(sum, bound);
}

template <class Term>
inline unsigned add_eight(ResidualInput<double> input, Term term, std::size_t i,
                          std::int64_t bound, WideLanes& lanes) {
  const __m256d s = _mm256_set1_pd(input.scale);
  const double* r = input.residual + i;
  const __m256d a = canonical(_mm256_add_pd(_mm256_mul_pd(s, load(r)), term.wide(i)));
  const __m256d b = canonical(_mm256_add_pd(_mm256_mul_pd(s, load(r + 4)), term.wide(i + 4)));
  _mm256_storeu_pd(input.out + i, a);
  _mm256_storeu_pd(input.out + i + 4, b);
  lanes.add(a, b);
  return some_above(a, bound) | some_above(b, bound) << 4;
}

template <class T>
inline double squared_norm(const T* x, std::size_t size) {
  Lanes lanes;
  WideLanes wide(lanes);
  std::size_t i = square_wide(x, size, wide);
  wide.store(lanes);
  for (; i < size; ++i) lanes.add(i, x[i]);
  return lanes.total();
}

// Writes out = scale residual + term for the first 64 values, adds their squared_norm to the
// lanes and returns a mask of those above the bound.
template <class T, class Term>
inline std::uint64_t add_word(ResidualInput<T> input, Term term, Key<T> bound, Lanes& lanes) {
  WideLanes wide(lanes);
  std::uint64_t all = 0;
  for (std::size_t k = 0; k < kWord; k += kLanes)
    all |= std::uint64_t(add_eight(input, term, k, bound, wide)) << k;
  wide.store(lanes);
  return all;
}

#else

template <class T>
inline void square_some(const T* x, std::size_t size, Lanes& lanes) {
  const std::size_t full = size / kLanes * kLanes;
  for (std::size_t i = 0; i < full; i += kLanes)
    for (std::size_t k = 0; k < kLanes; ++k) lanes.add(k, x[i + k]);
  for (std::size_t i = full; i < size; ++i) lanes.add(i, x[i]);
}

template <class T>
inline double squared_norm(const T* x, std::size_t size) {
  Lanes lanes;
  square_some(x, size, lanes);
  return lanes.total();
}

template <class T, class Term>
inline std::uint64_t add_word(ResidualInput<T> input, Term term, Key<T> bound, Lanes& lanes) {
  SPARCML_IVDEP
  for (std::size_t i = 0; i < kWord; ++i)
    input.out[i] = canonical(input.scale * input.residual[i] + term.next(i));
  square_some(input.out, kWord, lanes);
  return word_above(input.out, bound);
}

#endif

// The squared norms of the blocks of a vector. Several threads may write them.
class BlockSquares {
 public:
  explicit BlockSquares(std::size_t size) : totals_(size / kSquares + 1) {}

  double& operator[](std::size_t block) { return totals_[block]; }

  double sum() const {
    double all = 0;
    for (const double total : totals_) all += total;
    return all;
  }

 private:
  std::vector<double> totals_;
};

// scale residual + term as a vector that the scans read. Each word of 64 values is computed
// when it is read, once and in order, so that one scan adds, updates the momentum and selects.
template <class T>
class ResidualAdder {
 public:
  const T* values;

  // Adds from `begin` on, which is the begin of a block.
  ResidualAdder(ResidualInput<T> input, BlockSquares& squares, std::size_t begin = 0)
      : values(input.out),
        input_(input),
        squares_(squares),
        past_caches_(past_caches(input.momentum.velocity, input.size)),
        done_(begin),
        block_(begin / kSquares) {}

  ResidualAdder(const ResidualAdder&) = delete;

  ~ResidualAdder() {
    if (in_block_) finish_block();  // the last one; the next may be another thread's
    if (past_caches_) finish_writes();
  }

  std::uint64_t word(std::size_t start, Key<T> bound) {
    alignas(kLine) T velocity[kWord];
    ResidualInput<T> input = from(input_, start);
    if (past_caches_) input.momentum.velocity = velocity;
    const std::uint64_t above =
        with_term(input, [&](auto term) { return add_word(input, term, bound, lanes_); });
    if (past_caches_) write_past_caches(velocity, input_.momentum.velocity + start);
    in_block_ = true;
    if ((start + kWord) % kSquares == 0) finish_block();
    return above;
  }

  std::uint64_t tail(std::size_t start, std::size_t size, Key<T> bound) {
    const ResidualInput<T> input = from(input_, start);
    with_term(input, [&](auto term) {
      for (std::size_t i = 0; i < size; ++i) {
        input.out[i] = canonical(input.scale * input.residual[i] + term.next(i));
        lanes_.add(i, input.out[i]);
      }
    });
    in_block_ = true;
    return tail_above(input.out, size, bound);
  }

  // Computes full words until at least `goal`, without selecting.
  void until(std::size_t goal) {
    for (; done_ < goal; done_ += kWord) {
      if (done_ + kWord <= input_.size)
        word(done_, kNone<T>);
      else
        tail(done_, input_.size - done_, kNone<T>);
    }
  }

 private:
  void finish_block() {
    squares_[block_++] = lanes_.total();
    lanes_ = Lanes();
    in_block_ = false;
  }

  ResidualInput<T> input_;
  BlockSquares& squares_;
  bool past_caches_;
  std::size_t done_, block_;
  bool in_block_ = false;
  Lanes lanes_;
};

template <class T>
double add_residual_any(ResidualInput<T> input) {
  BlockSquares squares(input.size);
  const Parts parts(input.size);
  for_parts(parts.count, [&](std::size_t part) {
    ResidualAdder<T>(input, squares, parts.begin(part)).until(parts.begin(part + 1));
  });
  return squares.sum();
}

}  // namespace
}  // namespace sparcml
