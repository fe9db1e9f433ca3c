// Elementwise loops over dense vectors: reductions out[i] = a[i] op b[i], momentum, and a
// search.
#pragma once

#include "kernels/isa.h"
#include "kernels/op.h"

namespace sparcml {

// `out` may be `a` or `b`; otherwise the arrays must not overlap.
SPARCML_KERNEL_OF_T(void, combine_dense, Op op, const T* a, const T* b, T* out, std::size_t n);

// Writes velocity = m u + g; with nesterov, velocity = m (u + g) and term = velocity + g, too.
// `term` is not used otherwise. The arrays must not overlap.
SPARCML_KERNEL_OF_T(void, add_momentum, T momentum, bool nesterov, const T* u, const T* g,
                    T* velocity, T* term, std::size_t n);

// Returns whether a vector of floats has a NaN.
SPARCML_KERNEL_OF_T(bool, has_nan, const T* values, std::size_t n);

}  // namespace sparcml
