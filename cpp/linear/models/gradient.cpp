#include "linear/models/gradient.h"

#include "kernels/threads/pool.h"

namespace sparcml::linear {

template <class T>
Total gradient(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
               double share, const Model<T>& model, std::uint32_t* indices, T* values) {
  return SPARCML_PICK(gradient<T>)(rows, chosen, count, loss, share, model, indices, values);
}

template <class T>
Total slopes(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
             double share, const Model<T>& model, double* out) {
  return SPARCML_PICK(slopes<T>)(rows, chosen, count, loss, share, model, out);
}

template <class T>
void combine_each(const Rows<T>& rows, const std::int64_t* chosen, const double* slopes,
                  std::size_t count, std::size_t features, const Take<T>& take) {
  SPARCML_PICK(combine_each<T>)(rows, chosen, slopes, count, features, take);
}

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

template Total gradient(const Rows<float>&, const std::int64_t*, std::size_t, Loss, double,
                        const Model<float>&, std::uint32_t*, float*);
template Total gradient(const Rows<double>&, const std::int64_t*, std::size_t, Loss, double,
                        const Model<double>&, std::uint32_t*, double*);
template Total slopes(const Rows<float>&, const std::int64_t*, std::size_t, Loss, double,
                      const Model<float>&, double*);
template Total slopes(const Rows<double>&, const std::int64_t*, std::size_t, Loss, double,
                      const Model<double>&, double*);
template void combine_each(const Rows<float>&, const std::int64_t*, const double*, std::size_t,
                           std::size_t, const Take<float>&);
template void combine_each(const Rows<double>&, const std::int64_t*, const double*, std::size_t,
                           std::size_t, const Take<double>&);
template void margins(const Rows<float>&, std::size_t, std::size_t, const float*, double*);
template void margins(const Rows<double>&, std::size_t, std::size_t, const double*, double*);

}  // namespace sparcml::linear
