// Any number of sorted streams into one: per index a left fold, in the order of the streams.
#pragma once

#include "kernels/isa.h"
#include "kernels/op.h"
#include "kernels/stream.h"

namespace sparcml {

// Returns the number of entries written. oi and ov have room for the entries of all streams, of
// which those not written may be used as scratch. Moves the streams to their ends.
template <class T>
std::size_t merge_many(Op op, Stream<T>* streams, std::size_t count, std::size_t block,
                       std::uint32_t* oi, T* ov);

namespace scalar {
template <class T>
std::size_t merge_many(Op op, Stream<T>* streams, std::size_t count, std::size_t block,
                       std::uint32_t* oi, T* ov);
}
namespace avx2 {
template <class T>
std::size_t merge_many(Op op, Stream<T>* streams, std::size_t count, std::size_t block,
                       std::uint32_t* oi, T* ov);
}

}  // namespace sparcml
