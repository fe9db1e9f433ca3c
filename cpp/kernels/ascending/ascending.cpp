#include "kernels/ascending/ascending.h"

namespace sparcml {

std::size_t ascending_prefix(const std::uint32_t* indices, std::size_t n,
                             std::uint32_t blocks) {
  return SPARCML_PICK(ascending_prefix)(indices, n, blocks);
}

}  // namespace sparcml
