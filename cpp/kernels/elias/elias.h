// Levels (small signed integers) in Elias's omega code, as in the QSGD paper.
//
// The omega code of 1 is "0". That of a larger x is the code of the number of bits of x minus
// one, without its last "0", then x in binary, highest bit first, then "0". Code words are
// stored without gaps from the lowest bit of the first byte, in words of 8 bytes.
//
//   dense    for each level: omega(|level| + 1), and its sign (1: negative) unless it is zero
//   sparse   for each nonzero level: omega(its distance from the one before, or from position
//   -1),
//            its sign, omega(|level|)
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

struct EliasPlan {
  std::size_t dense_bits, sparse_bits, nonzeros;
};

SPARCML_KERNEL(EliasPlan, elias_plan, const std::int8_t* levels, std::size_t n);
// Returns whether the code has exactly this number of words of 8 bytes.
SPARCML_KERNEL(bool, elias_encode, const std::int8_t* levels, std::size_t n, bool sparse,
               std::uint8_t* out, std::size_t words);
// Returns whether the words are exactly a code of n levels, `nonzeros` of them nonzero if
// sparse.
SPARCML_KERNEL(bool, elias_decode, const std::uint8_t* data, std::size_t words, bool sparse,
               std::size_t nonzeros, std::int8_t* levels, std::size_t n);

}  // namespace sparcml
