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

// Returns the best r for n random indices that end with `last`.
unsigned gap_parameter(std::size_t n, std::uint32_t last);

// Returns the bytes of a code with r; 0 if the indices (n > 0) do not ascend strictly below
// 2^32 - 1.
std::size_t gap_nbytes(const std::uint32_t* indices, std::size_t n, unsigned r);

// Writes the section of gap_nbytes bytes; the indices must be valid.
void gap_encode(const std::uint32_t* indices, std::size_t n, unsigned r, std::uint8_t* out);

// Checks the bytes and returns an error message or nullptr. `out` holds n indices, which are
// unspecified after an error.
const char* gap_decode(const std::uint8_t* data, std::size_t size, std::size_t n,
                       std::uint32_t blocks, std::uint32_t* out);

namespace scalar {
std::size_t gap_nbytes(const std::uint32_t* indices, std::size_t n, unsigned r);
void gap_encode(const std::uint32_t* indices, std::size_t n, unsigned r, std::uint8_t* out);
const char* gap_decode(const std::uint8_t* data, std::size_t size, std::size_t n,
                       std::uint32_t blocks, std::uint32_t* out);
}  // namespace scalar
namespace avx2 {
std::size_t gap_nbytes(const std::uint32_t* indices, std::size_t n, unsigned r);
void gap_encode(const std::uint32_t* indices, std::size_t n, unsigned r, std::uint8_t* out);
const char* gap_decode(const std::uint8_t* data, std::size_t size, std::size_t n,
                       std::uint32_t blocks, std::uint32_t* out);
}  // namespace avx2

}  // namespace sparcml
