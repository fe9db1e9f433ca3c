// Expands one word of the bitmap at a time, for any instruction set.
//
// Isa::unpack writes 64 values for the 64 bits of a word, and may read 8 values too many.
#pragma once

#include "kernels/bitmap/check.h"
#include "kernels/expand/expand.h"

namespace sparcml {
namespace {

template <class T>
inline void unpack_exactly(std::uint64_t word, const T* values, T fill, T* out,
                           std::size_t count) {
  for (std::size_t k = 0; k < count; ++k, word >>= 1) out[k] = word & 1 ? *values++ : fill;
}

template <class Isa, class T>
const char* expand_any(const Plane<T>& p, T fill, T* out, std::size_t size) {
  const auto blocks = static_cast<std::uint32_t>(size);
  if (const char* wrong = check_bitmap(p.bits, p.nbytes, p.nnz, blocks)) return wrong;
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
