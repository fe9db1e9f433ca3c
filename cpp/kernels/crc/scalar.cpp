// Reflected 32-bit CRCs by tables, eight bytes per step ("slicing by 8": Kounavis and
// Berry, 2005).
#include <array>

#include "kernels/bits.h"
#include "kernels/crc/crc.h"

namespace sparcml {
namespace {

using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

// tables[k][b] is the contribution of byte b to the remainder after k more bytes.
constexpr CrcTables crc_tables(std::uint32_t polynomial) {
  CrcTables t{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t rest = b;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? polynomial : 0);
    t[0][b] = rest;
  }
  for (int k = 1; k < 8; ++k)
    for (int b = 0; b < 256; ++b) t[k][b] = t[k - 1][b] >> 8 ^ t[0][t[k - 1][b] & 255];
  return t;
}

inline std::uint32_t crc_by_tables(const CrcTables& tables, const std::uint8_t* data,
                                   std::size_t n, std::uint32_t rest) {
  for (; n >= 8; n -= 8, data += 8) {
    const std::uint64_t word = load64(data) ^ rest;
    rest = 0;
    for (int k = 0; k < 8; ++k) rest ^= tables[7 - k][word >> (8 * k) & 255];
  }
  for (; n; --n, ++data) rest = rest >> 8 ^ tables[0][(rest ^ *data) & 255];
  return rest;
}

constexpr auto castagnoli_tables = crc_tables(0x82F63B78), zlib_tables = crc_tables(0xEDB88320);

}  // namespace

std::uint32_t scalar::crc32c(const std::uint8_t* data, std::size_t n, std::uint32_t crc) {
  return ~crc_by_tables(castagnoli_tables, data, n, ~crc);
}

void crc32_spans(const std::uint8_t* data, const std::int64_t* starts,
                 const std::int64_t* stops, std::size_t count, std::uint32_t modulus,
                 std::uint32_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto n = static_cast<std::size_t>(stops[i] - starts[i]);
    out[i] = ~crc_by_tables(zlib_tables, data + starts[i], n, ~0u) % modulus;
  }
}

}  // namespace sparcml
