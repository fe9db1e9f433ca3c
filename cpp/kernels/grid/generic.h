// The walk over buckets, and one value at a time; the instruction sets bring the loops.
#pragma once

#include <limits>

#include "kernels/grid/grid.h"
#include "kernels/norms.h"
#include "kernels/op.h"
#include "kernels/packed.h"
#include "kernels/random.h"

namespace sparcml {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLarge = 0x1p64f, kSmall = 0x1p-64f;

// What a bucket's values are multiplied with, so that neither they nor the inverse of their
// norm leave the range of float32: a power of two, and 1 for all but absurd norms.
inline float factor_of(float norm) {
  if (norm == 0 || (norm >= kSmall && norm <= kLarge)) return 1;
  return norm < kSmall ? kLarge : kSmall;
}

// How one bucket is coded.
struct Steps {
  Steps(float norm, const Grid& grid)
      : levels(grid.levels),
        fraction(grid.levels < 32   ? 16
                 : grid.levels < 64 ? 15
                                    : 14),
        infinite(!(norm < kInfinity)),
        factor(factor_of(norm)) {
    const float unit = static_cast<float>(1u << fraction);
    most = static_cast<float>(levels) * unit;
    times = norm == 0 || infinite ? 0 : static_cast<float>(levels) / (norm * factor) * unit;
    none = -(1 << (grid.bits - 1));
  }

  unsigned levels, fraction;  // s and F
  bool infinite;
  float factor;
  float times, most;  // to and from the fixed point
  int none;           // the code of NaN
};

// To the nearest whole number, ties to even, for |x| < 2^22: adding 1.5 * 2^23 leaves no room
// for a fraction.
inline std::int32_t nearest(float x) {
  return static_cast<std::int32_t>(bits(x + 12582912.0f)) - 0x4B400000;
}

inline std::int8_t code_of(float v, const Steps& steps, std::uint32_t random) {
  float x = v * steps.factor * steps.times + (v - v);  // no infinity is clipped: it is NaN
  if (steps.infinite) x = std::fabs(v) == kInfinity || v != v ? v : 0;
  x = x > steps.most ? steps.most : x;
  x = x < -steps.most ? -steps.most : x;
  const std::int32_t level =
      (nearest(x == x ? x : 0) + static_cast<std::int32_t>(random)) >> steps.fraction;
  return static_cast<std::int8_t>(x == x ? level : steps.none);
}

// A bucket's codes from some word on.
inline void codes_of(const float* v, std::size_t n, const Steps& steps, Random random,
                     std::int8_t* codes) {
  const std::uint32_t low = (1u << steps.fraction) - 1;
  for (std::size_t i = 0; i < n; i += kGroup)
    for (std::size_t j = 0; j < kWords; ++j) {
      const std::uint32_t word = random.next();
      if (i + j < n) codes[i + j] = code_of(v[i + j], steps, word & low);
      if (i + j + 8 < n)
        codes[i + j + 8] = code_of(v[i + j + 8], steps, word >> (32 - steps.fraction));
    }
}

inline float norm_of(const float* v, std::size_t n, const Grid& grid) {
  if (grid.norm == Norm::largest) return largest(v, n);
  if (grid.norm == Norm::length) return static_cast<float>(std::sqrt(squares(v, n)));
  return grid.scale;
}

inline std::size_t buckets_of(std::size_t n, std::size_t bucket) {
  return n / bucket + (n % bucket != 0);
}

template <class Loops>
void any_to_grid(const float* values, std::size_t n, const Grid& grid, std::uint64_t seed,
                 std::uint8_t* code) {
  Packer packer(grid.bits, code + 4 * buckets_of(n, grid.bucket));
  const std::size_t words = (grid.bucket + kGroup - 1) / kGroup * kWords;  // of a bucket
  std::uint64_t first = 0;
  for (std::size_t at = 0; at < n; at += grid.bucket, code += 4, first += words) {
    const std::size_t size = n - at < grid.bucket ? n - at : grid.bucket;
    const float norm = norm_of(values + at, size, grid);
    std::memcpy(code, &norm, 4);
    const Steps steps(norm, grid);
    for (std::size_t done = 0; done < size; done += Packer::most) {
      const std::size_t piece = size - done < Packer::most ? size - done : Packer::most;
      const Random random(seed, first + done / 2);
      Loops::codes(values + at + done, piece, steps, random, packer.space());
      packer.add(piece);
    }
    if (size < grid.bucket) break;  // at + bucket might not fit in a word
  }
  packer.finish();
}

// What the codes of a bucket stand for.
struct Values {
  Values(float norm, const Grid& grid)
      : factor(factor_of(norm)),
        most(std::fabs(norm)),
        step(norm * factor / static_cast<float>(grid.levels)),
        none(-(1 << (grid.bits - 1))),
        plain(factor == 1) {}

  float of(int level) const {
    if (level == none) return std::numeric_limits<float>::quiet_NaN();
    float x = static_cast<float>(level) * step;
    if (plain) return x;
    x = x / factor;
    x = x > most ? most : x;  // the last level of the largest norms is not to overflow
    x = x < -most ? -most : x;
    return canonical(x);
  }

  float factor, most, step;
  int none;
  bool plain;
};

template <class Loops>
void any_from_grid(const std::uint8_t* code, std::size_t n, const Grid& grid, float* values) {
  const std::uint8_t* codes = code + 4 * buckets_of(n, grid.bucket);
  const bool direct = Loops::has_direct(grid.bits) && grid.bucket % 8 == 0;
  Unpacker unpacker(grid.bits, codes, n);
  for (std::size_t at = 0; at < n; at += grid.bucket, code += 4) {
    const std::size_t size = n - at < grid.bucket ? n - at : grid.bucket;
    float norm;
    std::memcpy(&norm, code, 4);
    const Values bucket(norm, grid);
    if (direct) {
      Loops::direct(codes + at / 8 * grid.bits, size, grid.bits, bucket, values + at);
    } else {
      for (std::size_t done = 0, got; done < size; done += got) {
        const std::int8_t* next = unpacker.next(size - done, &got);
        Loops::values(next, got, bucket, values + at + done);
      }
    }
    if (size < grid.bucket) break;
  }
}

}  // namespace
}  // namespace sparcml
