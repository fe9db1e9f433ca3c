// The gradient of the loss of some rows, as a sorted sparse vector.
#pragma once

#include <functional>

#include "kernels/isa.h"
#include "linear/models/loss.h"
#include "linear/models/model.h"
#include "linear/models/rows.h"

namespace sparcml::linear {

struct Total {
  std::size_t nnz;     // entries written
  double slope, loss;  // gradient of the intercept; sum of losses, not multiplied by share
};

// Writes share * sum over the chosen rows of weight * loss'(margin) * x. Time and scratch
// memory depend on the nonzeros of these rows, not on the number of features. The output must
// hold the entries of the rows, or one per feature if that is less.
template <class T>
Total gradient(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
               double share, const Model<T>& model, std::uint32_t* indices, T* values);

// The two halves of a step: the slopes share * weight * loss'(margin) of the chosen rows; and
// their combination, of which `take` gets parts with different columns, on several threads.
template <class T>
Total slopes(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
             double share, const Model<T>& model, double* out);

template <class T>
using Take =
    std::function<void(const std::uint32_t* indices, const T* values, std::size_t nnz)>;
template <class T>
void combine_each(const Rows<T>& rows, const std::int64_t* chosen, const double* slopes,
                  std::size_t count, std::size_t features, const Take<T>& take);

namespace scalar {
template <class T>
Total gradient(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
               double share, const Model<T>& model, std::uint32_t* indices, T* values);
template <class T>
Total slopes(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
             double share, const Model<T>& model, double* out);
template <class T>
void combine_each(const Rows<T>& rows, const std::int64_t* chosen, const double* slopes,
                  std::size_t count, std::size_t features, const Take<T>& take);
}  // namespace scalar
namespace avx2 {
template <class T>
Total gradient(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
               double share, const Model<T>& model, std::uint32_t* indices, T* values);
template <class T>
Total slopes(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
             double share, const Model<T>& model, double* out);
template <class T>
void combine_each(const Rows<T>& rows, const std::int64_t* chosen, const double* slopes,
                  std::size_t count, std::size_t features, const Take<T>& take);
}  // namespace avx2

// Returns w.x of the rows from `first` to `last`, with w as stored.
template <class T>
void margins(const Rows<T>& rows, std::size_t first, std::size_t last, const T* weights,
             double* out);

}  // namespace sparcml::linear
