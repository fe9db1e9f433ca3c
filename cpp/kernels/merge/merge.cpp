#include "kernels/merge/merge.h"

namespace sparcml {

template <class T>
std::size_t merge(Op op, Stream<T> a, Stream<T> b, std::size_t block, std::uint32_t* oi,
                  T* ov) {
  return SPARCML_PICK(merge<T>)(op, a, b, block, oi, ov);
}

template std::size_t merge(Op, Stream<float>, Stream<float>, std::size_t, std::uint32_t*,
                           float*);
template std::size_t merge(Op, Stream<double>, Stream<double>, std::size_t, std::uint32_t*,
                           double*);
template std::size_t merge(Op, Stream<std::int32_t>, Stream<std::int32_t>, std::size_t,
                           std::uint32_t*, std::int32_t*);
template std::size_t merge(Op, Stream<std::int64_t>, Stream<std::int64_t>, std::size_t,
                           std::uint32_t*, std::int64_t*);

}  // namespace sparcml
