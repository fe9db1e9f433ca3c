#include "kernels/scatter/scatter.h"

namespace sparcml {

template <class T>
void scatter(Op op, T* dense, Stream<T> stream, std::size_t block) {
  SPARCML_PICK(scatter<T>)(op, dense, stream, block);
}

template <class T>
void scatter_assign(T* dense, Stream<T> stream, std::size_t block) {
  SPARCML_PICK(scatter_assign<T>)(dense, stream, block);
}

template void scatter(Op, float*, Stream<float>, std::size_t);
template void scatter(Op, double*, Stream<double>, std::size_t);
template void scatter(Op, std::int32_t*, Stream<std::int32_t>, std::size_t);
template void scatter(Op, std::int64_t*, Stream<std::int64_t>, std::size_t);
template void scatter_assign(float*, Stream<float>, std::size_t);
template void scatter_assign(double*, Stream<double>, std::size_t);

}  // namespace sparcml
