// Dense to sparse: the blocks in which some value differs from the fill.
//
// Values are compared as numbers (-0.0 equals 0.0, NaN differs from everything) or by their
// bits.
#pragma once

#include "kernels/isa.h"
#include "kernels/op.h"

namespace sparcml {

template <class T>
struct Dense {
  const T* values;
  std::size_t size;  // values, a multiple of block
  std::size_t block;
  T fill;
  bool bitwise;
};

// Writes the indices and values of these blocks and returns their number. oi and ov hold
// `limit` blocks; if there are more, it stops and returns limit + 1.
SPARCML_KERNEL_OF_T(std::size_t, compact, Dense<T> dense, std::size_t limit, std::uint32_t* oi,
                    T* ov);

// Returns the number of blocks that compact() would write.
SPARCML_KERNEL_OF_T(std::size_t, count_nonfill, Dense<T> dense);

// compact() for blocks of one value, with a bitmap (see bitmap.h) instead of indices.
SPARCML_KERNEL_OF_T(std::size_t, bitmap_compact, Dense<T> dense, std::size_t limit,
                    std::uint8_t* bitmap, T* ov);

}  // namespace sparcml
