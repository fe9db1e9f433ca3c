#include "kernels/linear/rows.h"

#include "kernels/ascending/ascending.h"

namespace sparcml::linear {

std::size_t first_invalid_row(const std::int64_t* indptr, const std::uint32_t* indices,
                              std::size_t count, std::size_t features) {
  const std::uint32_t limit =
      features < UINT32_MAX ? static_cast<std::uint32_t>(features) : UINT32_MAX;
  for (std::size_t row = 0; row < count; ++row) {
    const std::size_t size = static_cast<std::size_t>(indptr[row + 1] - indptr[row]);
    if (ascending_prefix(indices + indptr[row], size, limit) != size) return row;
  }
  return count;
}

}  // namespace sparcml::linear
