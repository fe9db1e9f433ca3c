// Values in buckets, each with a norm of its own, and a packed signed code for every value:
//
//   norm as float32, of each bucket | codes of b bits (see packed.h)
//
// The one code that no value has, -2^(b-1), is NaN; NaN does not count in a norm. An infinity
// makes the norm infinite: such a bucket decodes to infinities and NaN. With a norm that was
// given, an infinity becomes NaN. So what was not a number never comes back as one.
//
// The anonymous namespace is on purpose: see op.h.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/norms.h"
#include "kernels/packed.h"
#include "kernels/random.h"

namespace sparcml {

enum class Norm : int { largest, length, given };

struct Buckets {
  std::size_t bucket;  // values, at least 1
  unsigned bits;       // 2 to 8
  Norm norm;
  float scale;  // the norm that is given
};

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kLarge = 0x1p64f, kSmall = 0x1p-64f;

// Shares of a step, and the random numbers that they are compared with, in fixed point.
constexpr unsigned kFraction = 24;
constexpr float kUnit = 1 << kFraction;

// What a bucket's values are multiplied with, so that neither they nor the inverse of their
// norm leave the range of float32: a power of two, and 1 for all but absurd norms.
inline float factor_of(float norm) {
  if (norm == 0 || (norm >= kSmall && norm <= kLarge)) return 1;
  return norm < kSmall ? kLarge : kSmall;
}

inline int code_of_nan(unsigned bits) { return -(1 << (bits - 1)); }

inline std::size_t buckets_of(std::size_t n, std::size_t bucket) {
  return n / bucket + (n % bucket != 0);
}

inline float norm_of(const float* v, std::size_t n, const Buckets& kind) {
  if (kind.norm == Norm::largest) return largest(v, n);
  if (kind.norm == Norm::length) return static_cast<float>(std::sqrt(squares(v, n)));
  return kind.scale;
}

// Loops::codes(v, n, Steps(norm, kind), random, codes) codes a piece of a bucket.
template <class Loops, class Steps, class Kind>
void encode_buckets(const float* values, std::size_t n, const Kind& kind, std::uint64_t seed,
                    std::uint8_t* code) {
  Packer packer(kind.bits, code + 4 * buckets_of(n, kind.bucket));
  const std::size_t words = (kind.bucket + kLanes - 1) / kLanes * kLanes;  // of a bucket
  std::uint64_t first = 0;
  for (std::size_t at = 0; at < n; at += kind.bucket, code += 4, first += words) {
    const std::size_t size = n - at < kind.bucket ? n - at : kind.bucket;
    const float norm = norm_of(values + at, size, kind);
    std::memcpy(code, &norm, 4);
    const Steps steps(norm, kind);
    for (std::size_t done = 0; done < size; done += Packer::most) {
      const std::size_t piece = size - done < Packer::most ? size - done : Packer::most;
      const Random random(seed, first + done);
      Loops::codes(values + at + done, piece, steps, random, packer.space());
      packer.add(piece);
    }
    if (size < kind.bucket) break;  // at + bucket might not fit in a word
  }
  packer.finish();
}

// Loops::values(codes, n, Values(norm, kind), v) decodes a piece of a bucket; where there is
// room for a table of all values, Loops::direct does from the packed codes.
template <class Loops, class Values, class Kind>
void decode_buckets(const std::uint8_t* code, std::size_t n, const Kind& kind, float* values) {
  const std::uint8_t* codes = code + 4 * buckets_of(n, kind.bucket);
  const bool direct = Loops::has_direct(kind.bits) && kind.bucket % 8 == 0;
  Unpacker unpacker(kind.bits, codes, n);
  for (std::size_t at = 0; at < n; at += kind.bucket, code += 4) {
    const std::size_t size = n - at < kind.bucket ? n - at : kind.bucket;
    float norm;
    std::memcpy(&norm, code, 4);
    const Values bucket(norm, kind);
    if (direct) {
      Loops::direct(codes + at / 8 * kind.bits, size, kind.bits, bucket, values + at);
    } else {
      for (std::size_t done = 0, got; done < size; done += got) {
        const std::int8_t* next = unpacker.next(size - done, &got);
        Loops::values(next, got, bucket, values + at + done);
      }
    }
    if (size < kind.bucket) break;
  }
}

// One value at a time.
struct PlainLoops {
  template <class Steps>
  static void codes(const float* v, std::size_t n, const Steps& steps, Random random,
                    std::int8_t* codes) {
    for (std::size_t i = 0; i < n; ++i)
      codes[i] = steps.code(v[i], random.next() >> (32 - kFraction));
  }

  static bool has_direct(unsigned) { return false; }
  template <class Values>
  static void direct(const std::uint8_t*, std::size_t, unsigned, const Values&, float*) {}

  template <class Values>
  static void values(const std::int8_t* codes, std::size_t n, const Values& bucket, float* v) {
    for (std::size_t i = 0; i < n; ++i) v[i] = bucket.of(codes[i]);
  }
};

// To the nearest whole number, ties to even, for |x| < 2^31.
inline std::int32_t nearest(float x) { return static_cast<std::int32_t>(std::lrint(x)); }

}  // namespace
}  // namespace sparcml
