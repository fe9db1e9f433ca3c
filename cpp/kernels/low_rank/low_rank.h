// Products of a matrix with narrow factors, for PowerSGD. Unlike those of a BLAS, they give the
// same bits on every processor, so that replicas on different machines stay equal.
//
// M is an n x m matrix in row-major order. Factors are stored by columns: P has r columns of n
// values, Q has r columns of m values, one after the other.
#pragma once

#include <cstddef>

#include "kernels/isa.h"

namespace sparcml {

// P = M Q. Of each block of 1024 columns, product j is added to lane j mod 8 and the lanes as
// in norms.h; then the sums of the blocks.
SPARCML_KERNEL_OF_T(void, project_rows, const T* M, std::size_t n, std::size_t m, const T* Q,
                    std::size_t r, T* P);

// Q = M^T P. Rows are added in their order within blocks of 256, then the sums of the blocks.
SPARCML_KERNEL_OF_T(void, project_columns, const T* M, std::size_t n, std::size_t m, const T* P,
                    std::size_t r, T* Q);

// P = M Q with M = scale residual + gradient, as add_residual() in selection.h writes it, in
// one pass. Returns whether all of M is finite.
template <class T>
struct Correction {
  const T* residual;
  const T* gradient;
  T* out;  // M; may be the residual
  T scale;
};
SPARCML_KERNEL_OF_T(bool, project_corrected_rows, Correction<T> correction, std::size_t n,
                    std::size_t m, const T* Q, std::size_t r, T* P);

// M = P Q^T, added from the first column to the last. Then residual -= M, unless it is nullptr.
SPARCML_KERNEL_OF_T(void, expand_factors, const T* P, const T* Q, std::size_t n, std::size_t m,
                    std::size_t r, T* M, T* residual);

// Replaces the columns of P by orthonormal ones with the same span (Gram-Schmidt, twice per
// column, in double precision). A column that depends on earlier ones becomes zero.
SPARCML_KERNEL_OF_T(void, orthonormalize, T* P, std::size_t n, std::size_t r);

}  // namespace sparcml
