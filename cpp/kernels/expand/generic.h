// A word of the plane at a time, for any instruction set.
//
// Isa::unpack writes 64 values for the 64 bits of a word, and may read 8 values too many.
#pragma once

#include "kernels/bitmap/bitmap.h"
#include "kernels/expand/expand.h"
#include "kernels/ones.h"

namespace sparcml {
namespace {

template <class T>
inline void unpack_exactly(std::uint64_t word, const T* values, T fill, T* out,
                           std::size_t count) {
  for (std::size_t k = 0; k < count; ++k, word >>= 1) out[k] = word & 1 ? *values++ : fill;
}

template <class T>
const char* wrong_with(const Plane<T>& p, std::size_t size) {
  if (p.nbytes != bitmap_nbytes(static_cast<std::uint32_t>(size)))
    return "bitmap: section must have one bit per block";
  if (size % 64 && load64(p.bits + p.nbytes - 8) >> (size % 64))
    return "bitmap: index out of bounds";
  if (count_ones(p.bits, p.nbytes / 8) != p.nnz)
    return "bitmap: section has a wrong number of entries";
  return nullptr;
}

template <class Isa, class T>
const char* expand_any(const Plane<T>& p, T fill, T* out, std::size_t size) {
  if (const char* wrong = wrong_with(p, size)) return wrong;
  const T *from = p.values, *end = p.values + p.nnz;
  for (std::size_t start = 0; start < size; start += 64) {
    const std::uint64_t word = load64(p.bits + start / 8);
    const std::size_t count = size - start < 64 ? size - start : 64;
    if (count < 64 || end - from < 72)
      unpack_exactly(word, from, fill, out + start, count);
    else
      Isa::unpack(word, from, fill, out + start);
    from += __builtin_popcountll(word);
  }
  return nullptr;
}

}  // namespace
}  // namespace sparcml
