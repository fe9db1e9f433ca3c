// Indices as a bit plane: bit i, from the least significant on, says whether block i is there.
// The plane has whole words of 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

inline std::size_t bitmap_nbytes(std::uint32_t blocks) {
  return 8 * ((std::size_t{blocks} + 63) / 64);
}

// Writes bitmap_nbytes(blocks) bytes; returns what is wrong with the indices, or nullptr.
const char* bitmap_encode(const std::uint32_t* indices, std::size_t n, std::uint32_t blocks,
                          std::uint8_t* out);

// Distrusts the bytes: returns what is wrong with them, or nullptr. `out` holds n indices, and
// is unspecified after an error.
const char* bitmap_decode(const std::uint8_t* data, std::size_t size, std::size_t n,
                          std::uint32_t blocks, std::uint32_t* out);

namespace scalar {
const char* bitmap_encode(const std::uint32_t* indices, std::size_t n, std::uint32_t blocks,
                          std::uint8_t* out);
const char* bitmap_decode(const std::uint8_t* data, std::size_t size, std::size_t n,
                          std::uint32_t blocks, std::uint32_t* out);
}  // namespace scalar
namespace avx2 {
const char* bitmap_encode(const std::uint32_t* indices, std::size_t n, std::uint32_t blocks,
                          std::uint8_t* out);
const char* bitmap_decode(const std::uint8_t* data, std::size_t size, std::size_t n,
                          std::uint32_t blocks, std::uint32_t* out);
}  // namespace avx2

}  // namespace sparcml
