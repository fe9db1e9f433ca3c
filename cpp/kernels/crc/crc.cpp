#include "kernels/crc/crc.h"

namespace sparcml {

std::uint32_t crc32c(const std::uint8_t* data, std::size_t n, std::uint32_t crc) {
  return SPARCML_PICK(crc32c)(data, n, crc);
}

}  // namespace sparcml
