// One loop for all instruction sets, vectorised by the compiler.
#include "kernels/dense/dense.h"
#include "kernels/momentum.h"

namespace sparcml {
namespace {

template <class T>
void combine_all(Op op, const T* a, const T* b, T* out, std::size_t n) {
  with_op(op, [&](auto o) {
    SPARCML_IVDEP
    for (std::size_t i = 0; i < n; ++i) out[i] = combine<decltype(o)::value>(a[i], b[i]);
  });
}

template <class T>
void add_momentum_all(T momentum, bool nesterov, const T* u, const T* g, T* velocity, T* term,
                      std::size_t n) {
  if (nesterov) {
    SPARCML_IVDEP
    for (std::size_t i = 0; i < n; ++i) {
      velocity[i] = velocity_of<true>(momentum, u[i], g[i]);
      term[i] = term_of<true>(velocity[i], g[i]);
    }
  } else {
    SPARCML_IVDEP
    for (std::size_t i = 0; i < n; ++i) velocity[i] = velocity_of<false>(momentum, u[i], g[i]);
  }
}

// One comparison of two values finds a NaN in either.
template <class T>
bool has_nan_in(const T* values, std::size_t n) {
  constexpr std::size_t half = 1024;
  std::size_t start = 0;
  for (; start + 2 * half <= n; start += 2 * half) {
    const T *a = values + start, *b = a + half;
    int found = 0;
    for (std::size_t i = 0; i < half; ++i) found |= __builtin_isunordered(a[i], b[i]);
    if (found) return true;
  }
  for (; start < n; ++start)
    if (values[start] != values[start]) return true;
  return false;
}

}  // namespace
}  // namespace sparcml

namespace sparcml::SPARCML_NAMESPACE {

template <class T>
void combine_dense(Op op, const T* a, const T* b, T* out, std::size_t n) {
  combine_all(op, a, b, out, n);
}

template <class T>
void add_momentum(T momentum, bool nesterov, const T* u, const T* g, T* velocity, T* term,
                  std::size_t n) {
  add_momentum_all(momentum, nesterov, u, g, velocity, term, n);
}

template <class T>
bool has_nan(const T* values, std::size_t n) {
  return has_nan_in(values, n);
}

template bool has_nan(const float*, std::size_t);
template bool has_nan(const double*, std::size_t);
template void combine_dense(Op, const float*, const float*, float*, std::size_t);
template void combine_dense(Op, const double*, const double*, double*, std::size_t);
template void combine_dense(Op, const std::int32_t*, const std::int32_t*, std::int32_t*,
                            std::size_t);
template void combine_dense(Op, const std::int64_t*, const std::int64_t*, std::int64_t*,
                            std::size_t);
template void add_momentum(float, bool, const float*, const float*, float*, float*,
                           std::size_t);
template void add_momentum(double, bool, const double*, const double*, double*, double*,
                           std::size_t);

}  // namespace sparcml::SPARCML_NAMESPACE
