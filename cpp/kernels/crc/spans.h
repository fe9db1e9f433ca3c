// The CRC-32 of zlib (reflected, 0xEDB88320) of many short spans of one text.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sparcml {

// out[i] = the CRC-32 of data[starts[i]] to data[stops[i]], modulo `modulus`.
void crc32_spans(const std::uint8_t* data, const std::int64_t* starts,
                 const std::int64_t* stops, std::size_t count, std::uint32_t modulus,
                 std::uint32_t* out);

}  // namespace sparcml
