#include "kernels/dense/dense.h"

namespace sparcml {

template <class T>
void combine_dense(Op op, const T* a, const T* b, T* out, std::size_t n) {
  SPARCML_PICK(combine_dense<T>)(op, a, b, out, n);
}

template void combine_dense(Op, const float*, const float*, float*, std::size_t);
template void combine_dense(Op, const double*, const double*, double*, std::size_t);
template void combine_dense(Op, const std::int32_t*, const std::int32_t*, std::int32_t*,
                            std::size_t);
template void combine_dense(Op, const std::int64_t*, const std::int64_t*, std::int64_t*,
                            std::size_t);

}  // namespace sparcml
