// Sorts rows by index and sums those of equal index.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sparcml {

// Writes the indices in ascending order, each once, and the sum of its rows, from first to
// last. A row has `block` values. Returns the number of indices; the outputs have room for n
// rows. Indices are less than 2**32.
template <class T>
std::size_t coalesce(const std::int64_t* indices, const T* values, std::size_t n,
                     std::size_t block, std::uint32_t* oi, T* ov);

}  // namespace sparcml
