#include "kernels/scatter/generic.h"

namespace sparcml::scalar {

template <class T>
void scatter(Op op, T* dense, Stream<T> stream, std::size_t block) {
  scatter_all(op, dense, stream, block);
}

template <class T>
void place(T* dense, Stream<T> stream, std::size_t block) {
  place_all(dense, stream, block);
}

template void scatter(Op, float*, Stream<float>, std::size_t);
template void scatter(Op, double*, Stream<double>, std::size_t);
template void place(float*, Stream<float>, std::size_t);
template void place(double*, Stream<double>, std::size_t);

}  // namespace sparcml::scalar
