// Two sorted streams into one.
//
// An index that both have gets a's value op b's; any other value passes through (a NaN as the
// canonical one).
#pragma once

#include "kernels/isa.h"
#include "kernels/op.h"
#include "kernels/stream.h"

namespace sparcml {

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
