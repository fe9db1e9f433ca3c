// Levels (small whole numbers with a sign) in Elias's omega code, as QSGD sends them.
//
// The omega code of 1 is "0"; of a larger x it is the code of the number of x's bits less one
// without its last "0", then x in binary, highest bit first, then "0". Bits of a code word lie
// one after the other from the lowest bit of the first byte on, in words of 8 bytes.
//
//   dense    for each level: omega(|level| + 1), and if it is not zero its sign (1: negative)
//   sparse   for each level that is not zero: omega(distance from the one before it, the first
//            from just before the start), its sign, omega(|level|)
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

struct EliasPlan {
  std::size_t dense_bits, sparse_bits, nonzeros;
};

EliasPlan elias_plan(const std::int8_t* levels, std::size_t n);
// Whether the words, of 8 bytes, are exactly as many as the code takes.
bool elias_encode(const std::int8_t* levels, std::size_t n, bool sparse, std::uint8_t* out,
                  std::size_t words);
// Whether the words are exactly such a code, of so many nonzero levels if it is sparse.
bool elias_decode(const std::uint8_t* data, std::size_t words, bool sparse,
                  std::size_t nonzeros, std::int8_t* levels, std::size_t n);

namespace scalar {
EliasPlan elias_plan(const std::int8_t* levels, std::size_t n);
bool elias_encode(const std::int8_t* levels, std::size_t n, bool sparse, std::uint8_t* out,
                  std::size_t words);
bool elias_decode(const std::uint8_t* data, std::size_t words, bool sparse,
                  std::size_t nonzeros, std::int8_t* levels, std::size_t n);
}  // namespace scalar
namespace avx2 {
EliasPlan elias_plan(const std::int8_t* levels, std::size_t n);
bool elias_encode(const std::int8_t* levels, std::size_t n, bool sparse, std::uint8_t* out,
                  std::size_t words);
bool elias_decode(const std::uint8_t* data, std::size_t words, bool sparse,
                  std::size_t nonzeros, std::int8_t* levels, std::size_t n);
}  // namespace avx2

}  // namespace sparcml
