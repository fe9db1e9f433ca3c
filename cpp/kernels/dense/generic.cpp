// One loop for all instruction sets, vectorised by the compiler.
#include <algorithm>

#include "kernels/dense/dense.h"
#include "kernels/momentum.h"
#include "kernels/threads/pool.h"

namespace sparcml {
namespace {

template <class T>
void combine_part(Op op, const T* a, const T* b, T* out, std::size_t n) {
  with_op(op, [&](auto o) {
    SPARCML_IVDEP
    for (std::size_t i = 0; i < n; ++i) out[i] = combine<decltype(o)::value>(a[i], b[i]);
  });
}

}  // namespace

namespace SPARCML_NAMESPACE {

template <class T>
void combine_dense(Op op, const T* a, const T* b, T* out, std::size_t n) {
  constexpr std::size_t part_size = 1 << 18;  // values per part, at least
  const std::size_t parts = std::clamp<std::size_t>(n / part_size, 1, threads());
  if (parts == 1) return combine_part(op, a, b, out, n);
  for_parts(parts, [&](std::size_t part) {
    const std::size_t begin = part_begin(n, parts, part), end = part_begin(n, parts, part + 1);
    combine_part(op, a + begin, b + begin, out + begin, end - begin);
  });
}

template <class T>
void add_momentum(T momentum, bool nesterov, const T* u, const T* g, T* velocity, T* term,
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
bool has_nan(const T* values, std::size_t n) {
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

SPARCML_FOR_NUMBERS(combine_dense);
SPARCML_FOR_REALS(add_momentum);
SPARCML_FOR_REALS(has_nan);

}  // namespace SPARCML_NAMESPACE
}  // namespace sparcml
