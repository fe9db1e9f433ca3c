#include "kernels/crc/crc.h"
#include "kernels/crc/tables.h"

namespace sparcml {

namespace {
constexpr auto table = crc_tables(0x82F63B78);
}

std::uint32_t scalar::crc32c(const std::uint8_t* data, std::size_t n, std::uint32_t crc) {
  return ~crc_by_tables(table, data, n, ~crc);
}

}  // namespace sparcml
