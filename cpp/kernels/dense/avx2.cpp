#include "kernels/dense/generic.h"

namespace sparcml::avx2 {

template <class T>
void combine_dense(Op op, const T* a, const T* b, T* out, std::size_t n) {
  combine_all(op, a, b, out, n);
}

template void combine_dense(Op, const float*, const float*, float*, std::size_t);
template void combine_dense(Op, const double*, const double*, double*, std::size_t);

}  // namespace sparcml::avx2
