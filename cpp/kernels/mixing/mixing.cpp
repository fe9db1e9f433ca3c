#include "kernels/mixing/mixing.h"

namespace sparcml {

template <class T>
bool weighted_sum(const double* weights, const T* const* vectors, std::size_t count, T rate,
                  const T* g, const T* base, T* out, std::size_t n) {
  return SPARCML_PICK(weighted_sum<T>)(weights, vectors, count, rate, g, base, out, n);
}

template <class T>
void add_differences(const double* weights, const T* const* vectors, std::size_t count,
                     double gamma, const T* own, const T* x, T rate, const T* g, T* out,
                     std::size_t n) {
  SPARCML_PICK(add_differences<T>)(weights, vectors, count, gamma, own, x, rate, g, out, n);
}

template bool weighted_sum(const double*, const float* const*, std::size_t, float, const float*,
                           const float*, float*, std::size_t);
template bool weighted_sum(const double*, const double* const*, std::size_t, double,
                           const double*, const double*, double*, std::size_t);
template void add_differences(const double*, const float* const*, std::size_t, double,
                              const float*, const float*, float, const float*, float*,
                              std::size_t);
template void add_differences(const double*, const double* const*, std::size_t, double,
                              const double*, const double*, double, const double*, double*,
                              std::size_t);

}  // namespace sparcml
