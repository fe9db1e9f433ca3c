#include "linear/models/gradient.h"

#include "kernels/threads/pool.h"

namespace sparcml::linear {

template <class T>
static void margins_of(const Rows<T>& rows, std::size_t first, std::size_t last,
                       const T* weights, double* out) {
  for (std::size_t row = first; row < last; ++row) {
    double sums[4] = {};
    const std::int64_t end = rows.indptr[row + 1];
    std::int64_t k = rows.indptr[row];
    for (; k + 4 <= end; k += 4)
      for (int lane = 0; lane < 4; ++lane)
        sums[lane] += static_cast<double>(rows.values[k + lane]) *
                      static_cast<double>(weights[rows.indices[k + lane]]);
    for (; k < end; ++k)
      sums[0] +=
          static_cast<double>(rows.values[k]) * static_cast<double>(weights[rows.indices[k]]);
    out[row - first] = (sums[0] + sums[2]) + (sums[1] + sums[3]);
  }
}

template <class T>
void margins(const Rows<T>& rows, std::size_t first, std::size_t last, const T* weights,
             double* out) {
  const std::size_t count = last - first;
  const std::size_t nnz = static_cast<std::size_t>(rows.indptr[last] - rows.indptr[first]);
  const std::size_t parts = nnz < (1 << 16) ? 1 : 4 * threads();
  for_parts(parts, [&](std::size_t part) {
    const std::size_t from = part_begin(count, parts, part);
    const std::size_t to = part_begin(count, parts, part + 1);
    margins_of(rows, first + from, first + to, weights, out + from);
  });
}

template void margins(const Rows<float>&, std::size_t, std::size_t, const float*, double*);
template void margins(const Rows<double>&, std::size_t, std::size_t, const double*, double*);

}  // namespace sparcml::linear
