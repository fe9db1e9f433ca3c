// CRC-32C (Castagnoli): reflected, starts from and ends with all bits flipped.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

// Goes on from `crc`, the result for the bytes before these (0 if there are none).
std::uint32_t crc32c(const std::uint8_t* data, std::size_t n, std::uint32_t crc);

namespace scalar {
std::uint32_t crc32c(const std::uint8_t* data, std::size_t n, std::uint32_t crc);
}
namespace avx2 {
std::uint32_t crc32c(const std::uint8_t* data, std::size_t n, std::uint32_t crc);
}

}  // namespace sparcml
