// One loop for all instruction sets, vectorised by the compiler.
#include <limits>

#include "kernels/mixing/mixing.h"
#include "kernels/op.h"

namespace sparcml {
namespace {

constexpr std::size_t kBlock = 1024;  // values whose sums stay in the first-level cache

// Each block is read completely before it is written, so that `out` may be an input.
template <class T>
void sum_block(const double* weights, const T* const* vectors, std::size_t count,
               std::size_t start, std::size_t n, double* total) {
  for (std::size_t k = 0; k < count; ++k) {
    const double w = weights[k];
    const T* v = vectors[k] + start;
    if (k == 0) {
      SPARCML_IVDEP
      for (std::size_t i = 0; i < n; ++i) total[i] = w * static_cast<double>(v[i]);
    } else {
      SPARCML_IVDEP
      for (std::size_t i = 0; i < n; ++i) total[i] += w * static_cast<double>(v[i]);
    }
  }
}

template <class T>
void weighted_sum_all(const double* weights, const T* const* vectors, std::size_t count, T rate,
                      const T* g, const T* base, T* out, std::size_t n) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  double total[kBlock];
  T rounded[kBlock];
  for (std::size_t start = 0; start < n; start += kBlock) {
    const std::size_t size = n - start < kBlock ? n - start : kBlock;
    sum_block(weights, vectors, count, start, size, total);
    for (std::size_t i = 0; i < size; ++i) {
      rounded[i] = total[i] == total[i] ? static_cast<T>(total[i]) : nan;
    }
    if (g != nullptr) {
      for (std::size_t i = 0; i < size; ++i) rounded[i] -= rate * g[start + i];
    }
    if (base != nullptr) {
      for (std::size_t i = 0; i < size; ++i) rounded[i] -= base[start + i];
    }
    for (std::size_t i = 0; i < size; ++i) out[start + i] = rounded[i];
  }
}

template <class T>
void add_differences_all(const double* weights, const T* const* vectors, std::size_t count,
                         double gamma, const T* own, const T* x, T rate, const T* g, T* out,
                         std::size_t n) {
  double total[kBlock];
  T h[kBlock];
  for (std::size_t start = 0; start < n; start += kBlock) {
    const std::size_t size = n - start < kBlock ? n - start : kBlock;
    for (std::size_t i = 0; i < size; ++i) total[i] = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const double w = weights[k];
      const T* v = vectors[k] + start;
      for (std::size_t i = 0; i < size; ++i) {
        total[i] += w * (static_cast<double>(v[i]) - static_cast<double>(own[start + i]));
      }
    }
    for (std::size_t i = 0; i < size; ++i) h[i] = x[start + i];
    if (g != nullptr) {
      for (std::size_t i = 0; i < size; ++i) h[i] -= rate * g[start + i];
    }
    for (std::size_t i = 0; i < size; ++i) {
      out[start + i] = static_cast<T>(static_cast<double>(h[i]) + gamma * total[i]);
    }
  }
}

}  // namespace
}  // namespace sparcml

namespace sparcml::SPARCML_NAMESPACE {

template <class T>
void weighted_sum(const double* weights, const T* const* vectors, std::size_t count, T rate,
                  const T* g, const T* base, T* out, std::size_t n) {
  weighted_sum_all(weights, vectors, count, rate, g, base, out, n);
}

template <class T>
void add_differences(const double* weights, const T* const* vectors, std::size_t count,
                     double gamma, const T* own, const T* x, T rate, const T* g, T* out,
                     std::size_t n) {
  add_differences_all(weights, vectors, count, gamma, own, x, rate, g, out, n);
}

template void weighted_sum(const double*, const float* const*, std::size_t, float, const float*,
                           const float*, float*, std::size_t);
template void weighted_sum(const double*, const double* const*, std::size_t, double,
                           const double*, const double*, double*, std::size_t);
template void add_differences(const double*, const float* const*, std::size_t, double,
                              const float*, const float*, float, const float*, float*,
                              std::size_t);
template void add_differences(const double*, const double* const*, std::size_t, double,
                              const double*, const double*, double, const double*, double*,
                              std::size_t);

}  // namespace sparcml::SPARCML_NAMESPACE
