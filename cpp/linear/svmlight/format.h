// Formats rows as SVMlight text, with the fewest digits that read back as the same numbers.
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

// Returns the maximum bytes of a row with this number of entries.
constexpr std::size_t svmlight_row_bytes(std::size_t entries) { return 32 + 48 * entries; }

// Writes the rows from `row` that are certain to fit in `capacity` bytes; `row` becomes the
// first one not written. `base` is added to the indices.
template <class Value>
std::size_t svmlight_format(const RowsView<Value>& rows, std::size_t& row, std::uint32_t base,
                            char* out, std::size_t capacity);

}  // namespace sparcml
