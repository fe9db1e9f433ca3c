// The loops behind both instruction sets. 64 values are `width` words of 8 bytes, whatever the
// width: each such group is coded by a loop that vectorises, then packed.
//
// The anonymous namespace is on purpose: see op.h.
#pragma once

#include <limits>

#include "kernels/bits.h"
#include "kernels/whole/whole.h"

namespace sparcml {
namespace {

constexpr std::size_t kGroup = 64;
constexpr std::size_t kWords = 17;  // of a group of the widest codes, and one to read over

// How far a sum of `most` steps may be off its multiple, in steps: each addition rounds.
inline double slack(const Grid& grid) {
  const double most = grid.most, ulps = (most * most + 2 * most) / (1 << 24);
  return ulps < 0.25 ? ulps : 0.25;
}

// To the nearest whole number: adding 1.5 * 2^52 leaves no room for a fraction.
inline double nearest(double x) { return (x + 6755399441055744.0) - 6755399441055744.0; }

// Returns whether all 64 are multiples.
inline bool code_group(const float* v, const Grid& grid, double off, std::uint32_t* codes) {
  const double step = grid.step, most = grid.most;
  const std::uint32_t nan = (1u << grid.width) - 1;
  int bad = 0;
  for (std::size_t j = 0; j < kGroup; ++j) {
    const bool finite = v[j] - v[j] == 0;
    const double x = finite ? v[j] / step : 0.0, k = nearest(x), far = x - k;
    const bool fits = far <= off && far >= -off && k <= most && k >= -most;
    bad |= !fits;
    const double code = fits ? k + most : 0.0;
    codes[j] = finite ? static_cast<std::uint32_t>(static_cast<std::int32_t>(code)) : nan;
  }
  return !bad;
}

inline void pack_group(const std::uint32_t* codes, unsigned width, std::uint64_t* words) {
  BitWriter writer(reinterpret_cast<std::uint8_t*>(words));
  for (std::size_t j = 0; j < kGroup; ++j) writer.append(codes[j], width);
}

// Returns whether all 64 codes are in use.
inline bool value_group(const std::uint64_t* words, const Grid& grid, float* v) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(words);
  const std::uint32_t nan = (1u << grid.width) - 1, last = 2 * grid.most;
  int bad = 0;
  for (std::size_t j = 0; j < kGroup; ++j) {
    const std::size_t at = j * grid.width;
    const auto code = static_cast<std::uint32_t>(load64(bytes + at / 8) >> at % 8) & nan;
    bad |= code > last && code != nan;
    const auto k = static_cast<float>(static_cast<std::int32_t>(code - grid.most));
    v[j] = code == nan ? std::numeric_limits<float>::quiet_NaN() : k * grid.step;
  }
  return !bad;
}

inline std::size_t all_to_whole(const float* v, std::size_t n, const Grid& grid,
                                std::uint8_t* packed) {
  const double off = slack(grid);
  for (std::size_t i = 0; i < n; i += kGroup, packed += 8 * grid.width) {
    const std::size_t size = n - i < kGroup ? n - i : kGroup;
    std::uint32_t codes[kGroup];
    std::uint64_t words[kWords];
    float last[kGroup] = {};
    if (size < kGroup) std::memcpy(last, v + i, size * sizeof(float));
    if (!code_group(size < kGroup ? last : v + i, grid, off, codes)) return i;
    for (std::size_t j = size; j < kGroup; ++j) codes[j] = 0;
    pack_group(codes, grid.width, words);
    std::memcpy(packed, words, (size * grid.width + 7) / 8);
  }
  return n;
}

inline std::size_t all_from_whole(const std::uint8_t* packed, std::size_t n, const Grid& grid,
                                  float* v) {
  for (std::size_t i = 0; i < n; i += kGroup, packed += 8 * grid.width) {
    const std::size_t size = n - i < kGroup ? n - i : kGroup;
    std::uint64_t words[kWords] = {};
    std::memcpy(words, packed, (size * grid.width + 7) / 8);
    float last[kGroup];
    if (!value_group(words, grid, size < kGroup ? last : v + i)) return i;
    if (size < kGroup) std::memcpy(v + i, last, size * sizeof(float));
  }
  return n;
}

}  // namespace
}  // namespace sparcml
