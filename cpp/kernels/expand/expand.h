// A bit plane (see bitmap.h) and the values of its ones, into a dense vector.
//
// The opposite of bitmap_compact() in compact.h: no list of indices is written on the way.
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

// Distrusts the plane: returns what is wrong with it, or nullptr. All of `out` is written.
template <class T>
const char* bitmap_expand(Plane<T> plane, T fill, T* out, std::size_t size);

namespace scalar {
template <class T>
const char* bitmap_expand(Plane<T> plane, T fill, T* out, std::size_t size);
}  // namespace scalar
namespace avx2 {
template <class T>
const char* bitmap_expand(Plane<T> plane, T fill, T* out, std::size_t size);
}  // namespace avx2

}  // namespace sparcml
