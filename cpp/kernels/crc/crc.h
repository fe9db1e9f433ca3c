// CRC-32C (Castagnoli): reflected, with all bits inverted at the start and the end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

// Continues from `crc`, the result of the preceding bytes (0 if there are none).
SPARCML_KERNEL(std::uint32_t, crc32c, const std::uint8_t* data, std::size_t n,
               std::uint32_t crc);

}  // namespace sparcml
