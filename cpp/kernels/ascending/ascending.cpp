#include "kernels/ascending/ascending.h"

#include <algorithm>
#include <vector>

#include "kernels/threads/pool.h"

namespace sparcml {

std::size_t ascending_prefix(const std::uint32_t* indices, std::size_t n,
                             std::uint32_t blocks) {
  constexpr std::size_t part_size = 1 << 18;  // indices per part, at least
  const auto prefix = SPARCML_PICK(ascending_prefix);
  const std::size_t parts = std::clamp<std::size_t>(n / part_size, 1, threads());
  if (parts == 1) return prefix(indices, n, blocks);
  std::vector<std::size_t> found(parts);
  for_parts(parts, [&](std::size_t part) {
    // A part begins with the last index of the one before it, to compare with.
    const std::size_t from = part_begin(n, parts, part) - (part > 0);
    found[part] = from + prefix(indices + from, part_begin(n, parts, part + 1) - from, blocks);
  });
  for (std::size_t part = 0; part < parts; ++part)
    if (found[part] < part_begin(n, parts, part + 1)) return found[part];
  return n;
}

}  // namespace sparcml
