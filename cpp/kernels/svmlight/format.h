// Rows as text in the SVMlight format, with the fewest digits that give the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sparcml {

template <class Value>
struct RowsView {
  const std::int64_t* indptr;
  const std::uint32_t* indices;
  const Value* values;
  const double* labels;
  std::size_t rows;
};

// The most bytes that a row with so many entries can take.
constexpr std::size_t svmlight_row_bytes(std::size_t entries) { return 32 + 48 * entries; }

// Writes rows from `row` on, those that surely fit in `capacity` bytes; `row` becomes the first
// one that was not written. `base` is added to the indices.
template <class Value>
std::size_t svmlight_format(const RowsView<Value>& rows, std::size_t& row, std::uint32_t base,
                            char* out, std::size_t capacity);

}  // namespace sparcml
