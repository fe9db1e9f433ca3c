// Natural compression: each value at random to one of the two powers of two around it.
//
//   (bits of |v| + 23 random bits) >> 23
//
// is the exponent of the lower one, or of the upper one with the probability that makes the
// mean v: the fraction bits carry as often as they should. Below 2^-126 the neighbours are that
// and zero. Value i takes word i of the random numbers.
//
//   code:  exponents, a byte each | signs, a bit each, lowest first, padded with zeros
//
// Exponent 255 is infinity, which 2^128 is, too. Zero has no sign; with one it is NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

// `code` has n + ceil(n / 8) bytes.
void to_natural(const float* values, std::size_t n, std::uint64_t seed, std::uint8_t* code);
void from_natural(const std::uint8_t* code, std::size_t n, float* values);

namespace scalar {
void to_natural(const float* values, std::size_t n, std::uint64_t seed, std::uint8_t* code);
void from_natural(const std::uint8_t* code, std::size_t n, float* values);
}  // namespace scalar
namespace avx2 {
void to_natural(const float* values, std::size_t n, std::uint64_t seed, std::uint8_t* code);
void from_natural(const std::uint8_t* code, std::size_t n, float* values);
}  // namespace avx2

}  // namespace sparcml
