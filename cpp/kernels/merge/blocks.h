// The merge of two streams one entry at a time, for any instruction set.
#pragma once

#include "kernels/merge/merge.h"

namespace sparcml {
namespace {

// Copies entries that only one stream has; returns their number.
template <class T>
std::size_t copy(const Stream<T>& s, std::size_t block, std::uint32_t* oi, T* ov) {
  if (s.nnz == 0) return 0;
  std::memcpy(oi, s.indices, s.nnz * sizeof *oi);
  SPARCML_IVDEP
  for (std::size_t k = 0; k < s.nnz * block; ++k) ov[k] = canonical(s.values[k]);
  return s.nnz;
}

template <class T>
Stream<T> from(const Stream<T>& s, std::size_t start, std::size_t block) {
  return {s.indices + start, s.values + start * block, s.nnz - start};
}

// Merges one entry at a time with branches; for blocks, where the values dominate.
template <Op op, class T>
std::size_t merge_blocks(const Stream<T>& a, const Stream<T>& b, std::size_t block,
                         std::uint32_t* oi, T* ov) {
  std::size_t i = 0, j = 0, o = 0;
  while (i < a.nnz && j < b.nnz) {
    const std::uint32_t x = a.indices[i], y = b.indices[j];
    const T *u = a.values + i * block, *v = b.values + j * block;
    T* w = ov + o * block;
    if (x == y)
      for (std::size_t k = 0; k < block; ++k) w[k] = combine<op>(u[k], v[k]);
    else
      for (std::size_t k = 0; k < block; ++k) w[k] = canonical((x < y ? u : v)[k]);
    oi[o++] = x < y ? x : y;
    i += x <= y;
    j += y <= x;
  }
  o += copy(from(a, i, block), block, oi + o, ov + o * block);
  return o + copy(from(b, j, block), block, oi + o, ov + o * block);
}

// Returns the number of entries of the merged stream.
template <class T>
std::size_t count_union(const Stream<T>& a, const Stream<T>& b) {
  std::size_t i = 0, j = 0, o = 0;
  for (; i < a.nnz && j < b.nnz; ++o) {
    const std::uint32_t x = a.indices[i], y = b.indices[j];
    i += x <= y;
    j += y <= x;
  }
  return o + (a.nnz - i) + (b.nnz - j);
}

}  // namespace
}  // namespace sparcml
