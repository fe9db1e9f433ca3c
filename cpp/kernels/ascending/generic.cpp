// One loop for all instruction sets, vectorised by the compiler.
#include <algorithm>
#include <vector>

#include "kernels/ascending/ascending.h"
#include "kernels/threads/pool.h"

namespace sparcml {
namespace {

constexpr std::size_t kChunk = 1024;

// Returns the first position in [1, n) that does not ascend, else n. A chunk is checked at
// once, which vectorises, and searched only if it fails.
inline std::size_t first_descent(const std::uint32_t* x, std::size_t n) {
  std::size_t i = 1;
  for (; i + kChunk <= n; i += kChunk) {
    std::uint32_t wrong = 0;
    for (std::size_t k = i; k < i + kChunk; ++k) wrong |= x[k] <= x[k - 1];
    if (wrong) break;
  }
  while (i < n && x[i] > x[i - 1]) ++i;
  return i < n ? i : n;
}

// Finds the first ascending index out of bounds by bisection.
inline std::size_t first_wrong(const std::uint32_t* x, std::size_t n, std::uint32_t blocks) {
  std::size_t low = 0, high = first_descent(x, n);
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (x[middle] < blocks)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace

namespace SPARCML_NAMESPACE {

std::size_t ascending_prefix(const std::uint32_t* indices, std::size_t n,
                             std::uint32_t blocks) {
  constexpr std::size_t part_size = 1 << 18;  // indices per part, at least
  const std::size_t parts = std::clamp<std::size_t>(n / part_size, 1, threads());
  if (parts == 1) return first_wrong(indices, n, blocks);
  std::vector<std::size_t> found(parts);
  for_parts(parts, [&](std::size_t part) {
    // A part begins with the last index of the one before it, to compare with.
    const std::size_t from = part_begin(n, parts, part) - (part > 0);
    const std::size_t size = part_begin(n, parts, part + 1) - from;
    found[part] = from + first_wrong(indices + from, size, blocks);
  });
  for (std::size_t part = 0; part < parts; ++part)
    if (found[part] < part_begin(n, parts, part + 1)) return found[part];
  return n;
}

}  // namespace SPARCML_NAMESPACE
}  // namespace sparcml
