// Dense into sparse: the blocks in which some value differs from the fill.
//
// Differs as numbers (-0.0 equals 0.0, NaN differs from everything), or bit for bit.
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

// Returns the number of blocks found and writes their indices and values; stops and returns
// limit + 1 when there are more than `limit`, which is the room oi and ov have.
template <class T>
std::size_t compact(Dense<T> dense, std::size_t limit, std::uint32_t* oi, T* ov);

// The number of blocks that compact() would find.
template <class T>
std::size_t count_nonfill(Dense<T> dense);

// compact() for blocks of one value, with a bit plane (see bitmap.h) in place of indices.
template <class T>
std::size_t bitmap_compact(Dense<T> dense, std::size_t limit, std::uint8_t* plane, T* ov);

namespace scalar {
template <class T>
std::size_t compact(Dense<T> dense, std::size_t limit, std::uint32_t* oi, T* ov);
template <class T>
std::size_t count_nonfill(Dense<T> dense);
template <class T>
std::size_t bitmap_compact(Dense<T> dense, std::size_t limit, std::uint8_t* plane, T* ov);
}  // namespace scalar
namespace avx2 {
template <class T>
std::size_t compact(Dense<T> dense, std::size_t limit, std::uint32_t* oi, T* ov);
template <class T>
std::size_t count_nonfill(Dense<T> dense);
template <class T>
std::size_t bitmap_compact(Dense<T> dense, std::size_t limit, std::uint8_t* plane, T* ov);
}  // namespace avx2

}  // namespace sparcml
