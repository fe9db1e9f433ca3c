// Golomb-Rice code of the differences of strictly ascending indices.
//
//   gap_i = index_i - index_(i-1) - 1, with index_(-1) = -1
//
//   byte 0      r, 0 to 31
//   bytes 1-7   0
//   low plane   the r low bits of each gap, one after the other
//   high plane  for each gap gap >> r zeros, then a one
//
// Bits are stored from the least significant one; each plane is padded with zeros to 8 bytes. A
// section without indices is empty. The one at position p_i of the high plane belongs to entry
// i, so
//
//   index_i = ((p_i - i) << r) + low_0 + ... + low_i + i
//
// and both planes are decoded independently.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

namespace {

// Returns the best r for n random indices that end with `last`.
inline unsigned gap_parameter(std::size_t n, std::uint32_t last) {
  // Gaps of random indices are geometric: with x = P(gap >= 2^r) they need r + 1 / (1 - x)
  // bits, and r + 1 is better while x > 1 / phi. At density p that is 2^r < log(phi) / -log(1 -
  // p), and 1 / -log(1 - p) is 1/p - 1/2 up to a tenth. log(phi) = 31537 / 2^16.
  const std::uint64_t range = std::uint64_t{last} + 1;
  const std::uint64_t bound = 31537 * (2 * range - n);
  unsigned r = 0;
  while (r < 31 && (std::uint64_t{n} << (r + 17)) < bound) ++r;
  return r;
}

}  // namespace

// Returns the bytes of a code with r; 0 if the indices (n > 0) do not ascend strictly below
// 2^32 - 1.
SPARCML_KERNEL(std::size_t, gap_nbytes, const std::uint32_t* indices, std::size_t n,
               unsigned r);

// Writes the section of gap_nbytes bytes; the indices must be valid.
SPARCML_KERNEL(void, gap_encode, const std::uint32_t* indices, std::size_t n, unsigned r,
               std::uint8_t* out);

// Checks the bytes and returns an error message or nullptr. `out` holds n indices, which are
// unspecified after an error.
SPARCML_KERNEL(const char*, gap_decode, const std::uint8_t* data, std::size_t size,
               std::size_t n, std::uint32_t blocks, std::uint32_t* out);

}  // namespace sparcml
