#include "kernels/dense/dense.h"

#include <algorithm>

#include "kernels/threads/pool.h"

namespace sparcml {

template <class T>
void combine_dense(Op op, const T* a, const T* b, T* out, std::size_t n) {
  constexpr std::size_t part_size = 1 << 18;  // values per part, at least
  const auto combine = SPARCML_PICK(combine_dense<T>);
  const std::size_t parts = std::clamp<std::size_t>(n / part_size, 1, threads());
  if (parts == 1) return combine(op, a, b, out, n);
  for_parts(parts, [&](std::size_t part) {
    const std::size_t begin = part_begin(n, parts, part), end = part_begin(n, parts, part + 1);
    combine(op, a + begin, b + begin, out + begin, end - begin);
  });
}

template <class T>
void add_momentum(T momentum, bool nesterov, const T* u, const T* g, T* velocity, T* term,
                  std::size_t n) {
  SPARCML_PICK(add_momentum<T>)(momentum, nesterov, u, g, velocity, term, n);
}

template <class T>
bool has_nan(const T* values, std::size_t n) {
  return SPARCML_PICK(has_nan<T>)(values, n);
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

}  // namespace sparcml
