// Reflected 32-bit CRCs by tables, eight bytes per step ("slicing by 8": Kounavis and
// Berry, 2005).
//
// op.h explains the anonymous namespace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/bits.h"

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

}  // namespace
}  // namespace sparcml
