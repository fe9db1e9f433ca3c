// Loops for all instruction sets. 64 values are `width` words of 8 bytes for any width: each
// such group is encoded by a loop that vectorises, then packed.
//
// op.h explains the anonymous namespace.
#include <limits>

#include "kernels/integer/integer.h"
#include "kernels/packed.h"

namespace sparcml {
namespace {

constexpr std::size_t kGroup = 64;
constexpr std::size_t kWords = 17;  // in a group of the widest codes, plus one that may be read

// Returns the rounding error of a sum of max_multiple steps, in steps.
inline float slack(const Multiples& multiples) {
  const double most = multiples.max_multiple, ulps = (most * most + 2 * most) / (1 << 24);
  return static_cast<float>(ulps < 0.25 ? ulps : 0.25);
}

// Rounds to the nearest integer: a sum with 1.5 * 2^23 has no bits for a fraction.
inline float nearest(float x) { return (x + 12582912.0f) - 12582912.0f; }

// Returns whether all 64 are multiples.
inline bool code_group(const float* v, const Multiples& multiples, float off,
                       std::int32_t* codes) {
  const auto most = static_cast<float>(multiples.max_multiple);
  const std::int32_t nan = (1 << multiples.width) - 1;
  std::int32_t misses[kGroup],
      bad = 0;  // combined in a loop of their own, or neither would vectorise
  for (std::size_t j = 0; j < kGroup; ++j) {
    const float x = (v[j] - v[j] == 0 ? v[j] : 0.0f) / multiples.step, k = nearest(x);
    const float far = __builtin_fabsf(x - k), size = __builtin_fabsf(k);
    const float excess = far <= off ? size : 2 * most;  // also if NaN
    misses[j] = excess <= most ? 0 : 1;
    const float code = excess <= most ? k + most : 0.0f;
    codes[j] = v[j] - v[j] == 0 ? static_cast<std::int32_t>(code) : nan;
  }
  for (std::size_t j = 0; j < kGroup; ++j) bad |= misses[j];
  return !bad;
}

inline void pack_group(const std::int32_t* codes, unsigned width, std::uint64_t* words) {
  auto* to = reinterpret_cast<std::uint8_t*>(words);
  if (width <= 8) {
    std::uint8_t bytes[kGroup];
    for (std::size_t j = 0; j < kGroup; ++j) bytes[j] = static_cast<std::uint8_t>(codes[j]);
    for (std::size_t j = 0; j < kGroup; j += 8, to += width)
      store64(to, squeeze8(load64(bytes + j), width));
    return;
  }
  BitWriter writer(to);
  for (std::size_t j = 0; j < kGroup; ++j)
    writer.append(static_cast<std::uint64_t>(codes[j]), width);
}

inline void unpack_group(const std::uint64_t* words, unsigned width, std::int32_t* codes) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(words);
  if (width <= 8) {
    std::uint8_t bytes[kGroup];
    for (std::size_t j = 0; j < kGroup; j += 8, from += width)
      store64(bytes + j, spread8(load64(from), width));
    for (std::size_t j = 0; j < kGroup; ++j) codes[j] = bytes[j];
    return;
  }
  for (std::size_t j = 0; j < kGroup; ++j) {
    const std::size_t at = j * width;
    codes[j] = static_cast<std::int32_t>(load64(from + at / 8) >> at % 8 & ((1 << width) - 1));
  }
}

// Returns whether all 64 codes are in use.
inline bool value_group(const std::int32_t* codes, const Multiples& multiples, float* v) {
  const std::int32_t nan = (1 << multiples.width) - 1;
  const auto last = static_cast<std::int32_t>(2 * multiples.max_multiple);
  std::int32_t used[kGroup], largest = 0;
  const auto most = static_cast<std::int32_t>(multiples.max_multiple);
  for (std::size_t j = 0; j < kGroup; ++j) {
    const float x = static_cast<float>(codes[j] - most) * multiples.step;
    v[j] = codes[j] == nan ? std::numeric_limits<float>::quiet_NaN() : x;
  }
  for (std::size_t j = 0; j < kGroup; ++j) used[j] = codes[j] == nan ? 0 : codes[j];
  for (std::size_t j = 0; j < kGroup; ++j) largest = used[j] > largest ? used[j] : largest;
  return largest <= last;
}

}  // namespace

namespace SPARCML_NAMESPACE {

std::size_t to_integer(const float* v, std::size_t n, Multiples multiples,
                       std::uint8_t* packed) {
  const float off = slack(multiples);
  for (std::size_t i = 0; i < n; i += kGroup, packed += 8 * multiples.width) {
    const std::size_t size = n - i < kGroup ? n - i : kGroup;
    std::int32_t codes[kGroup];
    std::uint64_t words[kWords];
    float last[kGroup] = {};
    if (size < kGroup) std::memcpy(last, v + i, size * sizeof(float));
    if (!code_group(size < kGroup ? last : v + i, multiples, off, codes)) return i;
    for (std::size_t j = size; j < kGroup; ++j) codes[j] = 0;
    pack_group(codes, multiples.width, words);
    std::memcpy(packed, words, (size * multiples.width + 7) / 8);
  }
  return n;
}

std::size_t from_integer(const std::uint8_t* packed, std::size_t n, Multiples multiples,
                         float* v) {
  for (std::size_t i = 0; i < n; i += kGroup, packed += 8 * multiples.width) {
    const std::size_t size = n - i < kGroup ? n - i : kGroup;
    std::uint64_t words[kWords] = {};
    std::memcpy(words, packed, (size * multiples.width + 7) / 8);
    float last[kGroup];
    std::int32_t codes[kGroup];
    unpack_group(words, multiples.width, codes);
    if (!value_group(codes, multiples, size < kGroup ? last : v + i)) return i;
    if (size < kGroup) std::memcpy(v + i, last, size * sizeof(float));
  }
  return n;
}

}  // namespace SPARCML_NAMESPACE
}  // namespace sparcml
