// Prefetching from memory.
#pragma once

#include "linear/models/model.h"
#include "linear/models/rows.h"

namespace sparcml::linear {

constexpr std::size_t kLine = 64;  // bytes of a cache line

template <class T>
inline void fetch_row(const Rows<T>& rows, std::int64_t row) {
  const std::int64_t from = rows.indptr[row], to = rows.indptr[row + 1];
  for (std::int64_t k = from; k < to; k += kLine / 4) __builtin_prefetch(rows.indices + k);
  for (std::int64_t k = from; k < to; k += kLine / sizeof(T))
    __builtin_prefetch(rows.values + k);
}

template <Lazy lazy, class T>
inline void fetch_weights(const Rows<T>& rows, std::int64_t row, const Model<T>& model) {
  for (std::int64_t k = rows.indptr[row]; k < rows.indptr[row + 1]; ++k)
    __builtin_prefetch(place<lazy>(model, rows.indices[k]));
}

}  // namespace sparcml::linear
