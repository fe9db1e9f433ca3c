// Merges two sorted streams.
//
// An index of both gets a's value op b's; every other value is copied, with NaN made canonical.
#pragma once

#include "kernels/isa.h"
#include "kernels/op.h"
#include "kernels/stream.h"

namespace sparcml {

// Returns the number of entries written. oi and ov must hold a.nnz + b.nnz entries, all of
// which may be used as scratch.
SPARCML_KERNEL_OF_T(std::size_t, merge, Op op, Stream<T> a, Stream<T> b, std::size_t block,
                    std::uint32_t* oi, T* ov);

}  // namespace sparcml
