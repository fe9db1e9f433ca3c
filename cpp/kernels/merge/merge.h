// Two sorted streams into one.
//
// A stream is n indices, strictly ascending, and n * block values. An index that both have gets
// a's value op b's; any other value passes through (a NaN as the canonical one).
#pragma once

#include "kernels/isa.h"
#include "kernels/op.h"

namespace sparcml {

template <class T>
struct Stream {
  const std::uint32_t* indices;
  const T* values;
  std::size_t nnz;
};

// Returns the number of entries written. oi and ov have room for a.nnz + b.nnz entries, all of
// which may be used as scratch.
template <class T>
std::size_t merge(Op op, Stream<T> a, Stream<T> b, std::size_t block, std::uint32_t* oi, T* ov);

namespace scalar {
template <class T>
std::size_t merge(Op op, Stream<T> a, Stream<T> b, std::size_t block, std::uint32_t* oi, T* ov);
}
namespace avx2 {
template <class T>
std::size_t merge(Op op, Stream<T> a, Stream<T> b, std::size_t block, std::uint32_t* oi, T* ov);
}

}  // namespace sparcml
