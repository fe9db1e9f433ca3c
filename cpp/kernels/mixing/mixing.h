// Steps of decentralized methods over dense vectors, each in one pass. Weighted sums are formed
// in double precision in the given order and rounded once; a sum that is NaN is the canonical
// one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

// Writes out[i] = sum_k weights[k] vectors[k][i], rounded, then - rate g[i], then - base[i].
// `g` and `base` may be null. `out` may be one of the arrays. Returns whether all results are
// finite.
SPARCML_KERNEL_OF_T(bool, weighted_sum, const double* weights, const T* const* vectors,
                    std::size_t count, T rate, const T* g, const T* base, T* out,
                    std::size_t n);

// Writes out[i] = h + gamma sum_k weights[k] (vectors[k][i] - own[i]), rounded once, where
// h = x[i] - rate g[i] is rounded, too. `g` may be null. `out` may be one of the arrays.
SPARCML_KERNEL_OF_T(void, add_differences, const double* weights, const T* const* vectors,
                    std::size_t count, double gamma, const T* own, const T* x, T rate,
                    const T* g, T* out, std::size_t n);

// Like add_differences, only for the values of these blocks: entries [block i, block (i + 1))
// for each of the indices.
SPARCML_KERNEL_OF_T(void, add_differences_at, const std::uint32_t* indices, std::size_t indexed,
                    std::size_t block, const double* weights, const T* const* vectors,
                    std::size_t count, double gamma, const T* own, const T* x, T rate,
                    const T* g, T* out);

}  // namespace sparcml
