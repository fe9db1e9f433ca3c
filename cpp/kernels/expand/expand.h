// Expands a bitmap (see bitmap.h) and the values of its ones to a dense vector.
//
// This is the inverse of bitmap_compact() in compact.h, without a list of indices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

template <class T>
struct Plane {
  const std::uint8_t* bits;
  std::size_t nbytes;
  const T* values;
  std::size_t nnz;
};

// Checks the bitmap and returns an error message or nullptr. Writes all of `out`.
SPARCML_KERNEL_OF_T(const char*, bitmap_expand, Plane<T> plane, T fill, T* out,
                    std::size_t size);

// Returns the number of ones in words of 8 bytes.
SPARCML_KERNEL(std::size_t, bitmap_ones, const std::uint8_t* bits, std::size_t words);

}  // namespace sparcml
