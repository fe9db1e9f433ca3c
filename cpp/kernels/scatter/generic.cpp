// One loop for all instruction sets; the compiler vectorises it for wide blocks.
#include "kernels/scatter/scatter.h"

namespace sparcml {
namespace {

constexpr std::size_t kCached = 1 << 19;  // bytes of a range that needs no prefetching
constexpr std::size_t kAhead = 32;        // entries

template <Op op, class T>
void scatter_values(T* dense, const Stream<T>& s) {
  std::size_t n = 0;
  // Indices are too far apart for the processor to guess the next one.
  if (s.nnz > kAhead && (s.indices[s.nnz - 1] - s.indices[0]) * sizeof(T) > kCached)
    for (; n < s.nnz - kAhead; ++n) {
      __builtin_prefetch(dense + s.indices[n + kAhead], 1);
      dense[s.indices[n]] = combine<op>(dense[s.indices[n]], s.values[n]);
    }
  for (; n < s.nnz; ++n) dense[s.indices[n]] = combine<op>(dense[s.indices[n]], s.values[n]);
}

}  // namespace

namespace SPARCML_NAMESPACE {

template <class T>
void scatter(Op op, T* dense, Stream<T> s, std::size_t block) {
  with_op(op, [&](auto o) {
    constexpr Op known = decltype(o)::value;
    if (block == 1) return scatter_values<known>(dense, s);
    for (std::size_t n = 0; n < s.nnz; ++n) {
      T* d = dense + s.indices[n] * block;
      const T* v = s.values + n * block;
      SPARCML_IVDEP
      for (std::size_t k = 0; k < block; ++k) d[k] = combine<known>(d[k], v[k]);
    }
  });
}

template <class T>
void scatter_assign(T* dense, Stream<T> s, std::size_t block) {
  for (std::size_t n = 0; n < s.nnz; ++n) {
    if (block == 1)
      dense[s.indices[n]] = s.values[n];
    else
      std::memcpy(dense + s.indices[n] * block, s.values + n * block, block * sizeof(T));
  }
}

SPARCML_FOR_NUMBERS(scatter);
SPARCML_FOR_REALS(scatter_assign);

}  // namespace SPARCML_NAMESPACE
}  // namespace sparcml
