// CRC-32C (Castagnoli): reflected, with all bits inverted at the start and the end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

// Continues from `crc`, the result of the preceding bytes (0 if there are none).
SPARCML_KERNEL(std::uint32_t, crc32c, const std::uint8_t* data, std::size_t n,
               std::uint32_t crc);

// Writes the CRC-32 of zlib (reflected, 0xEDB88320) of many short spans of one text: out[i] is
// that of data[starts[i]] to data[stops[i]], modulo `modulus`.
void crc32_spans(const std::uint8_t* data, const std::int64_t* starts,
                 const std::int64_t* stops, std::size_t count, std::uint32_t modulus,
                 std::uint32_t* out);

}  // namespace sparcml
