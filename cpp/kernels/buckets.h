// Values in buckets: each bucket has its own norm, and each value a packed signed code.
//
//   one float32 norm per bucket | codes of b bits (see packed.h)
//
// The code -2^(b-1), which no number has, stands for NaN. Infinities are encoded as NaN, too,
// and norms ignore both: a value that is not finite never decodes to a finite one, and does not
// change the others of its bucket.
//
// op.h explains the anonymous namespace.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/norms.h"
#include "kernels/packed.h"
#include "kernels/random.h"
#include "kernels/threads/pool.h"

namespace sparcml {

enum class Norm : int { max, l2, given };

struct Buckets {
  std::size_t bucket;  // values per bucket, at least 1
  unsigned bits;       // 2 to 8
  Norm norm;
  float scale;  // of Norm::given
};

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kLarge = 0x1p64f, kSmall = 0x1p-64f;

// Fractions of a step, and the random numbers compared with them, in fixed point.
constexpr unsigned kFraction = 24;
constexpr float kUnit = 1 << kFraction;

// Returns a power of two that keeps scaled values and the inverse of their norm within the
// range of float32: 1 unless the norm is extreme.
inline float rescaling(float norm) {
  if (norm == 0 || (norm >= kSmall && norm <= kLarge)) return 1;
  return norm < kSmall ? kLarge : kSmall;
}

inline int code_of_nan(unsigned bits) { return -(1 << (bits - 1)); }

inline std::size_t buckets_of(std::size_t n, std::size_t bucket) {
  return n / bucket + (n % bucket != 0);
}

inline float norm_of(const float* v, std::size_t n, const Buckets& format) {
  if (format.norm == Norm::max) return largest(v, n);
  if (format.norm == Norm::given) return format.scale;
  constexpr double most = std::numeric_limits<float>::max();  // no value is larger
  return static_cast<float>(std::min(std::sqrt(squares(v, n)), most));
}

constexpr std::size_t kWorth = 1 << 17;  // values for which further threads are woken

// Calls work(first bucket, first value, number of values) for parts that begin at a byte of the
// packed codes.
template <class Format, class Work>
void by_buckets(std::size_t n, const Format& format, Work work) {
  const std::size_t buckets = buckets_of(n, format.bucket);
  const bool divides = n >= kWorth && format.bucket % 8 == 0 && threads() > 1;
  const std::size_t parts = divides ? std::min(buckets, 2 * threads()) : 1;
  for_parts(parts, [&](std::size_t part) {
    const std::size_t first = part_begin(buckets, parts, part) * format.bucket;
    const std::size_t end =
        part + 1 < parts ? part_begin(buckets, parts, part + 1) * format.bucket : n;
    work(first / format.bucket, first, end - first);
  });
}

// Loops::codes(v, n, Steps(norm, format), random, codes) encodes a segment of a bucket.
template <class Loops, class Steps, class Format>
void encode_some(const float* values, std::size_t n, const Format& format, std::uint64_t seed,
                 std::uint64_t first, std::uint8_t* norms, std::uint8_t* codes) {
  Packer packer(format.bits, codes);
  const std::size_t words =
      (format.bucket + kLanes - 1) / kLanes * kLanes;  // random words per bucket
  first *= words;
  for (std::size_t at = 0; at < n; at += format.bucket, norms += 4, first += words) {
    const std::size_t size = n - at < format.bucket ? n - at : format.bucket;
    const float norm = norm_of(values + at, size, format);
    std::memcpy(norms, &norm, 4);
    const Steps steps(norm, format);
    for (std::size_t done = 0; done < size; done += Packer::kMaxSegment) {
      const std::size_t segment =
          size - done < Packer::kMaxSegment ? size - done : Packer::kMaxSegment;
      const Random random(seed, first + done);
      Loops::codes(values + at + done, segment, steps, random, packer.space());
      packer.add(segment);
    }
    if (size < format.bucket) break;  // at + bucket might overflow
  }
  packer.finish();
}

template <class Loops, class Steps, class Format>
void encode_buckets(const float* values, std::size_t n, const Format& format,
                    std::uint64_t seed, std::uint8_t* code) {
  std::uint8_t* const codes = code + 4 * buckets_of(n, format.bucket);
  by_buckets(n, format, [&](std::size_t bucket, std::size_t at, std::size_t count) {
    encode_some<Loops, Steps>(values + at, count, format, seed, bucket, code + 4 * bucket,
                              codes + at / 8 * format.bits);
  });
}

// Loops::values(codes, n, Values(norm, format), v) decodes a segment of a bucket. If a table of
// all values fits in registers, Loops::direct decodes from the packed codes.
template <class Loops, class Values, class Format>
void decode_some(const std::uint8_t* norms, const std::uint8_t* codes, std::size_t n,
                 const Format& format, float* values) {
  const bool direct = Loops::has_direct(format.bits) && format.bucket % 8 == 0;
  Unpacker unpacker(format.bits, codes, n);
  for (std::size_t at = 0; at < n; at += format.bucket, norms += 4) {
    const std::size_t size = n - at < format.bucket ? n - at : format.bucket;
    float norm;
    std::memcpy(&norm, norms, 4);
    const Values bucket(norm, format);
    if (direct) {
      Loops::direct(codes + at / 8 * format.bits, size, format.bits, bucket, values + at);
    } else {
      for (std::size_t done = 0, got; done < size; done += got) {
        const std::int8_t* next = unpacker.next(size - done, &got);
        Loops::values(next, got, bucket, values + at + done);
      }
    }
    if (size < format.bucket) break;
  }
}

template <class Loops, class Values, class Format>
void decode_buckets(const std::uint8_t* code, std::size_t n, const Format& format,
                    float* values) {
  const std::uint8_t* const codes = code + 4 * buckets_of(n, format.bucket);
  by_buckets(n, format, [&](std::size_t bucket, std::size_t at, std::size_t count) {
    decode_some<Loops, Values>(code + 4 * bucket, codes + at / 8 * format.bits, count, format,
                               values + at);
  });
}

// Loops that handle one value at a time.
struct ScalarLoops {
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

// Rounds to the nearest integer, ties to even, for |x| < 2^31.
inline std::int32_t nearest(float x) { return static_cast<std::int32_t>(std::lrint(x)); }

}  // namespace
}  // namespace sparcml
