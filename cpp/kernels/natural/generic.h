// Handles eight values at a time, which share a byte of signs.
#pragma once

#include "kernels/natural/natural.h"
#include "kernels/op.h"
#include "kernels/random.h"

namespace sparcml {
namespace {

constexpr std::uint32_t kInfiniteBits = 0x7F800000;

inline void eight_to_natural(const float* v, std::size_t n, Random& random,
                             std::uint8_t* exponents, std::uint8_t* signs) {
  unsigned negative = 0;
  for (unsigned i = 0; i < n; ++i) {
    const std::uint32_t x = bits(v[i]), size = x & 0x7FFFFFFF;
    const std::uint32_t exponent = (size + (random.next() >> 9)) >> 23;
    const bool nan = size > kInfiniteBits;
    exponents[i] = static_cast<std::uint8_t>(nan ? 0 : exponent);
    negative |= static_cast<unsigned>(nan || (exponent && x >> 31)) << i;
  }
  *signs = static_cast<std::uint8_t>(negative);
}

inline void eight_from_natural(const std::uint8_t* exponents, std::uint8_t signs, std::size_t n,
                               float* v) {
  for (unsigned i = 0; i < n; ++i) {
    const std::uint32_t sign = signs >> i & 1, size = std::uint32_t{exponents[i]} << 23;
    const std::uint32_t x = size || !sign ? size | sign << 31 : 0x7FC00000;
    std::memcpy(v + i, &x, 4);
  }
}

// Starts at a value whose position is a multiple of 8.
inline void rest_to_natural(const float* values, std::size_t from, std::size_t n,
                            Random& random, std::uint8_t* code) {
  for (std::size_t i = from; i < n; i += 8)
    eight_to_natural(values + i, n - i < 8 ? n - i : 8, random, code + i, code + n + i / 8);
}

inline void rest_from_natural(const std::uint8_t* code, std::size_t from, std::size_t n,
                              float* values) {
  for (std::size_t i = from; i < n; i += 8)
    eight_from_natural(code + i, code[n + i / 8], n - i < 8 ? n - i : 8, values + i);
}

}  // namespace
}  // namespace sparcml
