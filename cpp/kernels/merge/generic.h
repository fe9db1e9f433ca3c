// The merge of two streams, for any instruction set.
#include <memory>

#include "kernels/merge/lanes.h"

namespace sparcml {
namespace {

constexpr std::size_t kSmall =
    128;  // below this number of entries, lanes cost more than they save

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

// Returns the part of s below `bound`. This is not std::lower_bound, because templates of the
// library are shared between files whatever instruction set they were compiled for.
template <class T>
Stream<T> below(const Stream<T>& s, std::uint32_t bound) {
  std::size_t low = 0, high = s.nnz;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (s.indices[middle] < bound)
      low = middle + 1;
    else
      high = middle;
  }
  return {s.indices, s.values, low};
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

// Lanes merge only below the last index of the stream that ends first. There, both streams have
// a greater entry to stop at, so that no lane reads past an end.
template <class Isa, Op op, class T>
std::size_t merge_values(Stream<T> a, Stream<T> b, std::uint32_t* oi, T* ov) {
  if (a.nnz == 0 || b.nnz == 0 || a.nnz + b.nnz < kSmall)
    return merge_blocks<op>(a, b, 1, oi, ov);
  const std::uint32_t a_last = a.indices[a.nnz - 1], b_last = b.indices[b.nnz - 1];
  const std::uint32_t bound = a_last < b_last ? a_last : b_last;
  Stream<T> low_a = below(a, bound), low_b = below(b, bound);
  a = from(a, low_a.nnz, 1);
  b = from(b, low_b.nnz, 1);
  // Kept: its pages would be returned to the system and mapped again with each call.
  static thread_local const std::unique_ptr<Scratch<T>> scratch(new Scratch<T>);
  std::size_t o = 0;
  while (const std::size_t left = low_a.nnz + low_b.nnz) {
    const std::size_t size = left < kLanes * kSegment ? left : kLanes * kSegment;
    o += round<Isa, op>(low_a, low_b, size, *scratch, oi + o, ov + o);
  }
  return o + merge_blocks<op>(a, b, 1, oi + o, ov + o);
}

template <class Isa, class T>
std::size_t merge_any(Op op, const Stream<T>& a, const Stream<T>& b, std::size_t block,
                      std::uint32_t* oi, T* ov) {
  return with_op(op, [&](auto o) {
    constexpr Op known = decltype(o)::value;
    return block == 1 ? merge_values<Isa, known>(a, b, oi, ov)
                      : merge_blocks<known>(a, b, block, oi, ov);
  });
}

}  // namespace
}  // namespace sparcml
