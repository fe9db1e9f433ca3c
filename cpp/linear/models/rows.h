// Rows of a sparse matrix (CSR) and their labels. Columns ascend in each row and are below the
// number of features: `first_invalid_row` checks this once, and the loops rely on it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sparcml::linear {

template <class T>
struct Rows {
  const std::int64_t* indptr;
  const std::uint32_t* indices;
  const T* values;
  const double* labels;
  const double* weights;  // null: all ones

  std::size_t size(std::int64_t row) const {
    return static_cast<std::size_t>(indptr[row + 1] - indptr[row]);
  }
  double weight(std::int64_t row) const { return weights ? weights[row] : 1.0; }
};

// Returns the number of entries of the chosen rows.
template <class T>
inline std::size_t entries(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += rows.size(chosen[i]);
  return sum;
}

// Returns the first row whose columns do not ascend or reach `features`; `count` if there is
// none.
std::size_t first_invalid_row(const std::int64_t* indptr, const std::uint32_t* indices,
                              std::size_t count, std::size_t features);

}  // namespace sparcml::linear
