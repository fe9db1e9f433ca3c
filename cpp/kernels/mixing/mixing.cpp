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

// The processor waits for memory here: one version serves all instruction sets.
template <class T>
void add_differences_at(const std::uint32_t* indices, std::size_t indexed, std::size_t block,
                        const double* weights, const T* const* vectors, std::size_t count,
                        double gamma, const T* own, const T* x, T rate, const T* g, T* out) {
  for (std::size_t at = 0; at < indexed; ++at) {
    const std::size_t start = indices[at] * block;
    for (std::size_t i = start; i < start + block; ++i) {
      const double mine = own[i];
      double total = 0;
      for (std::size_t k = 0; k < count; ++k) {
        total += weights[k] * (static_cast<double>(vectors[k][i]) - mine);
      }
      const T h = g != nullptr ? x[i] - rate * g[i] : x[i];
      out[i] = static_cast<T>(static_cast<double>(h) + gamma * total);
    }
  }
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
template void add_differences_at(const std::uint32_t*, std::size_t, std::size_t, const double*,
                                 const float* const*, std::size_t, double, const float*,
                                 const float*, float, const float*, float*);
template void add_differences_at(const std::uint32_t*, std::size_t, std::size_t, const double*,
                                 const double* const*, std::size_t, double, const double*,
                                 const double*, double, const double*, double*);

}  // namespace sparcml
