// Adds or writes a sparse vector into a dense one.
#pragma once

#include "kernels/isa.h"
#include "kernels/op.h"
#include "kernels/stream.h"

namespace sparcml {

// Sets dense[i] = dense[i] op value for each block index i.
SPARCML_KERNEL_OF_T(void, scatter, Op op, T* dense, Stream<T> stream, std::size_t block);

// Sets dense[i] = value, bit for bit.
SPARCML_KERNEL_OF_T(void, scatter_assign, T* dense, Stream<T> stream, std::size_t block);

}  // namespace sparcml
