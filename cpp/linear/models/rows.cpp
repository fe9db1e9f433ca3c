#include "linear/models/rows.h"

#include <algorithm>
#include <vector>

#include "kernels/ascending/ascending.h"
#include "kernels/threads/pool.h"

namespace sparcml::linear {

std::size_t first_invalid_row(const std::int64_t* indptr, const std::uint32_t* indices,
                              std::size_t count, std::size_t features) {
  const std::uint32_t limit =
      features < UINT32_MAX ? static_cast<std::uint32_t>(features) : UINT32_MAX;
  const std::size_t nnz = count ? static_cast<std::size_t>(indptr[count] - indptr[0]) : 0;
  const std::size_t parts = nnz < (1 << 16) ? 1 : threads();
  std::vector<std::size_t> first(parts, count);
  for_parts(parts, [&](std::size_t part) {
    const std::size_t end = part_begin(count, parts, part + 1);
    for (std::size_t row = part_begin(count, parts, part); row < end; ++row) {
      const std::size_t size = static_cast<std::size_t>(indptr[row + 1] - indptr[row]);
      if (ascending_prefix(indices + indptr[row], size, limit) == size) continue;
      first[part] = row;
      return;
    }
  });
  return *std::min_element(first.begin(), first.end());
}

}  // namespace sparcml::linear
