#include "kernels/ascending/generic.h"

namespace sparcml::scalar {

std::size_t ascending(const std::uint32_t* indices, std::size_t n, std::uint32_t blocks) {
  return first_wrong(indices, n, blocks);
}

}  // namespace sparcml::scalar
