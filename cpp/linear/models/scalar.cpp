#include "linear/models/generic.h"

namespace sparcml::linear::scalar {
namespace {

struct Plain {
  static std::size_t below(const std::uint32_t* at, const std::uint32_t* end,
                           std::uint64_t limit) {
    const std::uint32_t* stop = at;
    while (stop < end && *stop < limit) ++stop;
    return static_cast<std::size_t>(stop - at);
  }

  template <class T>
  static std::uint64_t differs(const T* values) {
    std::uint64_t bits = 0;
    for (std::size_t k = 0; k < kWord; ++k) bits |= std::uint64_t(values[k] != 0) << k;
    return bits;
  }

  template <class T>
  static void clear(T* values) {
    std::memset(values, 0, kWord * sizeof(T));
  }

  template <class T>
  static double dot(const T* weights, const Cursor<T>& c, std::uint64_t, std::uint64_t limit,
                    std::size_t& count) {
    double sums[8] = {};
    count = below(c.at, c.end, limit);
    for (std::size_t k = 0; k < count; ++k)
      sums[k % 8] += static_cast<double>(c.value[k]) * weights[c.at[k]];
    for (int k = 0; k < 4; ++k) sums[k] += sums[k + 4];
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
  }
};

}  // namespace

template <class T>
Total gradient(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
               double share, const Model<T>& model, std::uint32_t* indices, T* values) {
  return gradient_any<Plain>(rows, chosen, count, loss, share, model, indices, values);
}

template <class T>
Total slopes(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
             double share, const Model<T>& model, double* out) {
  return slopes_any<Plain>(rows, chosen, count, loss, share, model, out);
}

template <class T>
void combine_each(const Rows<T>& rows, const std::int64_t* chosen, const double* slopes,
                  std::size_t count, std::size_t features, const Take<T>& take) {
  combine_each_any<Plain>(rows, chosen, slopes, count, features, take);
}

#define SPARCML_HALVES(T)                                                                     \
  template Total slopes(const Rows<T>&, const std::int64_t*, std::size_t, Loss, double,       \
                        const Model<T>&, double*);                                            \
  template void combine_each(const Rows<T>&, const std::int64_t*, const double*, std::size_t, \
                             std::size_t, const Take<T>&);
SPARCML_HALVES(float)
SPARCML_HALVES(double)

template Total gradient(const Rows<float>&, const std::int64_t*, std::size_t, Loss, double,
                        const Model<float>&, std::uint32_t*, float*);
template Total gradient(const Rows<double>&, const std::int64_t*, std::size_t, Loss, double,
                        const Model<double>&, std::uint32_t*, double*);

}  // namespace sparcml::linear::scalar
