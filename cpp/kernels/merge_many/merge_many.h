// Merges any number of sorted streams: a left fold per index, in the order of the streams.
#pragma once

#include "kernels/isa.h"
#include "kernels/op.h"
#include "kernels/stream.h"

namespace sparcml {

// Returns the number of entries written, and advances the streams to their ends. oi and ov must
// hold the entries of all streams; the entries not written may be used as scratch.
SPARCML_KERNEL_OF_T(std::size_t, merge_many, Op op, Stream<T>* streams, std::size_t count,
                    std::size_t block, std::uint32_t* oi, T* ov);

}  // namespace sparcml
