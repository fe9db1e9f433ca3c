// Dense reduction: out[i] = a[i] op b[i].
#pragma once

#include "kernels/isa.h"
#include "kernels/op.h"

namespace sparcml {

// `out` may be `a` or `b`; otherwise the arrays must not overlap.
template <class T>
void combine_dense(Op op, const T* a, const T* b, T* out, std::size_t n);

namespace scalar {
template <class T>
void combine_dense(Op op, const T* a, const T* b, T* out, std::size_t n);
}
namespace avx2 {
template <class T>
void combine_dense(Op op, const T* a, const T* b, T* out, std::size_t n);
}

}  // namespace sparcml
