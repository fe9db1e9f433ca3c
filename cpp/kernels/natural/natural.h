// Natural compression: stochastic rounding to one of the two neighbouring powers of two.
//
//   (bits of |v| + 23 random bits) >> 23
//
// is the exponent of the lower one, or of the upper one with the probability that makes the
// mean v, because the fraction bits carry that often. Below 2^-126 the neighbours are 2^-126
// and zero. Value i uses word i of the random numbers.
//
//   code:  one exponent byte per value | one sign bit per value, lowest first, zero-padded
//
// Exponent 255 is infinity, and 2^128 rounds to it. A zero with a sign stands for NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

// `code` has n + ceil(n / 8) bytes.
SPARCML_KERNEL(void, to_natural, const float* values, std::size_t n, std::uint64_t seed,
               std::uint8_t* code);
SPARCML_KERNEL(void, from_natural, const std::uint8_t* code, std::size_t n, float* values);

}  // namespace sparcml
