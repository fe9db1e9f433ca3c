// The merge of two streams, for any instruction set.
#include <memory>

#include "kernels/merge/threaded.h"

namespace sparcml {
namespace {

constexpr std::size_t kSmall =
    128;  // below this number of entries, lanes cost more than they save

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
  std::size_t o = 0;
  if (is_worth_threads(low_a.nnz + low_b.nnz)) {
    o = merge_rounds<Isa, op>(low_a, low_b, oi, ov);
  } else {
    Scratch<T>& scratch = own_scratch<T>();
    while (const std::size_t left = low_a.nnz + low_b.nnz)
      o += round<Isa, op>(low_a, low_b, left < kRound ? left : kRound, scratch, oi + o, ov + o);
  }
  return o + merge_blocks<op>(a, b, 1, oi + o, ov + o);
}

template <class Isa, class T>
std::size_t merge_any(Op op, const Stream<T>& a, const Stream<T>& b, std::size_t block,
                      std::uint32_t* oi, T* ov) {
  return with_op(op, [&](auto o) {
    constexpr Op known = decltype(o)::value;
    if (block == 1) return merge_values<Isa, known>(a, b, oi, ov);
    return is_worth_threads((a.nnz + b.nnz) * block)
               ? merge_block_pieces<known>(a, b, block, oi, ov)
               : merge_blocks<known>(a, b, block, oi, ov);
  });
}

}  // namespace
}  // namespace sparcml
