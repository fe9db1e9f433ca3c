// Indices as a bitmap: bit i, from the least significant one, is set if block i is present. The
// bitmap consists of words of 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

inline std::size_t bitmap_nbytes(std::uint32_t blocks) {
  return 8 * ((std::size_t{blocks} + 63) / 64);
}

// Checks the indices and writes bitmap_nbytes(blocks) bytes. Returns an error message or
// nullptr.
SPARCML_KERNEL(const char*, bitmap_encode, const std::uint32_t* indices, std::size_t n,
               std::uint32_t blocks, std::uint8_t* out);

// Checks the bytes and returns an error message or nullptr. `out` holds n indices, which are
// unspecified after an error.
SPARCML_KERNEL(const char*, bitmap_decode, const std::uint8_t* data, std::size_t size,
               std::size_t n, std::uint32_t blocks, std::uint32_t* out);

}  // namespace sparcml
