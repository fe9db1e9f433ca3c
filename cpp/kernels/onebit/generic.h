// Buckets, bits and sums around the loops over 32 values, which each instruction set defines.
//
// op.h explains the anonymous namespace.
#pragma once

#include <limits>

#include "kernels/bits.h"
#include "kernels/norms.h"
#include "kernels/onebit/onebit.h"

namespace sparcml {
namespace {

constexpr std::size_t kGroup = 32;

// Writes groups of 32 bits without gaps, starting at any bit.
class Plane {
 public:
  Plane(std::uint8_t* bits, std::size_t at) : to_(bits + at / 8), used_(at % 8) {
    if (used_) carry_ = *to_ & ((1u << used_) - 1);
  }

  void append(std::uint32_t group) {
    const std::uint64_t word = carry_ | static_cast<std::uint64_t>(group) << used_;
    const auto low = static_cast<std::uint32_t>(word);
    std::memcpy(to_, &low, 4);
    to_ += 4;
    carry_ = word >> 32;
  }

  // Writes the last group of `count` bits; it must not have a bit beyond.
  void finish(std::uint32_t group, std::size_t count) {
    std::uint64_t word = carry_ | static_cast<std::uint64_t>(group) << used_;
    for (std::size_t left = used_ + count; left > 0; left -= left < 8 ? left : 8) {
      *to_++ = static_cast<std::uint8_t>(word);
      word >>= 8;
    }
  }

 private:
  std::uint8_t* to_;
  unsigned used_;
  std::uint64_t carry_ = 0;
};

// Runs `loop(values) -> 32 bits` over n values; the last group is padded with `fill`, which
// must not change any sum. Returns the number of bits set.
template <class Loop>
inline std::size_t in_groups(const float* v, std::size_t n, float fill, std::uint8_t* bits,
                             std::size_t at, Loop&& loop) {
  Plane plane(bits, at);
  std::size_t ones = 0, i = 0;
  for (; i + kGroup <= n; i += kGroup) {
    const std::uint32_t group = loop(v + i);
    ones += static_cast<std::size_t>(__builtin_popcount(group));
    plane.append(group);
  }
  const std::size_t rest = n - i;
  float last[kGroup];
  for (std::size_t j = 0; j < kGroup; ++j) last[j] = j < rest ? v[i + j] : fill;
  const std::uint32_t group = rest ? loop(last) & ((std::uint64_t{1} << rest) - 1) : 0;
  plane.finish(group, rest);
  return ones + static_cast<std::size_t>(__builtin_popcount(group));
}

// Makes NaN canonical, so that it does not depend on the values.
inline float level(double x) {
  return x == x ? static_cast<float>(x) : std::numeric_limits<float>::quiet_NaN();
}

inline float mean_of(double sum, std::size_t count) {
  return level(sum / static_cast<double>(count ? count : 1));
}

// Calls a function for each bucket with its start.
template <class Each>
inline void for_buckets(std::size_t n, std::size_t bucket, Each&& each) {
  for (std::size_t at = 0, b = 0; at < n; at += bucket, ++b)
    each(b, at, n - at < bucket ? n - at : bucket);
}

template <class Loops>
inline void all_zero(const float* v, std::size_t n, std::size_t bucket, float* levels,
                     std::uint8_t* bits) {
  for_buckets(n, bucket, [&](std::size_t b, std::size_t at, std::size_t size) {
    typename Loops::Classes classes;
    const std::size_t ones = in_groups(v + at, size, 0, bits, at, classes);
    levels[2 * b] = mean_of(classes.low(), size - ones);
    levels[2 * b + 1] = mean_of(classes.high(), ones);
  });
}

template <class Loops>
inline void all_mean(const float* v, std::size_t n, std::size_t bucket, float* levels,
                     std::uint8_t* bits) {
  for_buckets(n, bucket, [&](std::size_t b, std::size_t at, std::size_t size) {
    const float mean = mean_of(Loops::sum(v + at, size), size);
    typename Loops::Distances distances(mean);
    in_groups(v + at, size, mean, bits, at, distances);
    const double spread = distances.sum() / static_cast<double>(size);
    levels[2 * b] = level(mean - spread);
    levels[2 * b + 1] = level(mean + spread);
  });
}

template <class Loops>
inline void all_signs(const float* v, std::size_t n, std::size_t bucket, float* scales,
                      std::uint8_t* bits) {
  for_buckets(n, bucket, [&](std::size_t b, std::size_t at, std::size_t size) {
    typename Loops::Distances distances(0);
    in_groups(v + at, size, 0, bits, at, distances);
    scales[b] = mean_of(distances.sum(), size);
  });
}

// Returns 32 bits starting at bit `at`; does not read bytes from `end`.
inline std::uint32_t bits_at(const std::uint8_t* bits, std::size_t at, std::size_t end) {
  const std::size_t byte = at / 8;
  std::uint64_t word = 0;
  if (byte + 8 <= end)
    word = load64(bits + byte);
  else
    std::memcpy(&word, bits + byte, end - byte);
  return static_cast<std::uint32_t>(word >> at % 8);
}

// `loop(bits, values)` writes 32 values.
template <class Loop>
inline void all_two_levels(const float* levels, const std::uint8_t* bits, std::size_t n,
                           std::size_t bucket, float* v) {
  const std::size_t end = (n + 7) / 8;
  for_buckets(n, bucket, [&](std::size_t b, std::size_t at, std::size_t size) {
    const Loop loop(levels[2 * b], levels[2 * b + 1]);
    std::size_t i = 0;
    for (; i + kGroup <= size; i += kGroup) loop(bits_at(bits, at + i, end), v + at + i);
    if (i == size) return;
    float last[kGroup];
    loop(bits_at(bits, at + i, end), last);
    std::memcpy(v + at + i, last, (size - i) * sizeof(float));
  });
}

}  // namespace
}  // namespace sparcml
