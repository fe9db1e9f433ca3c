// One loop for all instruction sets, vectorised by the compiler.
#include "kernels/dense/dense.h"

namespace sparcml {
namespace {

template <class T>
void combine_all(Op op, const T* a, const T* b, T* out, std::size_t n) {
  with_op(op, [&](auto o) {
    SPARCML_IVDEP
    for (std::size_t i = 0; i < n; ++i) out[i] = combine<decltype(o)::value>(a[i], b[i]);
  });
}

}  // namespace
}  // namespace sparcml

namespace sparcml::SPARCML_NAMESPACE {

template <class T>
void combine_dense(Op op, const T* a, const T* b, T* out, std::size_t n) {
  combine_all(op, a, b, out, n);
}

template void combine_dense(Op, const float*, const float*, float*, std::size_t);
template void combine_dense(Op, const double*, const double*, double*, std::size_t);
template void combine_dense(Op, const std::int32_t*, const std::int32_t*, std::int32_t*,
                            std::size_t);
template void combine_dense(Op, const std::int64_t*, const std::int64_t*, std::int64_t*,
                            std::size_t);

}  // namespace sparcml::SPARCML_NAMESPACE
