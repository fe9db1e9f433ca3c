// The gradient of some rows' loss, as a sorted sparse vector.
#pragma once

#include "kernels/isa.h"
#include "kernels/linear/loss.h"
#include "kernels/linear/model.h"
#include "kernels/linear/rows.h"

namespace sparcml::linear {

struct Total {
  std::size_t nnz;     // entries written
  double slope, loss;  // the intercept's gradient; the losses, not multiplied by share
};

// share * sum over the chosen rows of weight * loss'(margin) * x. Time and scratch memory
// follow from the non-zeros of these rows, not from the number of features. The output has
// room for as many entries as the rows, or as there are features.
template <class T>
Total gradient(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
               double share, const Model<T>& model, std::uint32_t* indices, T* values);

// The sum over the chosen rows of slope * x, sorted, without what sums up to zero. Returns how
// many entries it wrote, within the same room.
template <class T>
std::size_t combine(const Rows<T>& rows, const std::int64_t* chosen, const double* slopes,
                    std::size_t count, std::size_t features, std::uint32_t* indices, T* values);

namespace scalar {
template <class T>
Total gradient(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
               double share, const Model<T>& model, std::uint32_t* indices, T* values);
template <class T>
std::size_t combine(const Rows<T>& rows, const std::int64_t* chosen, const double* slopes,
                    std::size_t count, std::size_t features, std::uint32_t* indices, T* values);
}  // namespace scalar
namespace avx2 {
template <class T>
Total gradient(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
               double share, const Model<T>& model, std::uint32_t* indices, T* values);
template <class T>
std::size_t combine(const Rows<T>& rows, const std::int64_t* chosen, const double* slopes,
                    std::size_t count, std::size_t features, std::uint32_t* indices, T* values);
}  // namespace avx2

// w.x of the rows from `first` to `last`; w as it is.
template <class T>
void margins(const Rows<T>& rows, std::size_t first, std::size_t last, const T* weights,
             double* out);

}  // namespace sparcml::linear
