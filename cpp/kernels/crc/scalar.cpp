#include <array>

#include "kernels/bits.h"
#include "kernels/crc/crc.h"

namespace sparcml {
namespace {

// table[k][b]: what byte b does to the remainder once k more bytes have followed it.
constexpr auto table = [] {
  std::array<std::array<std::uint32_t, 256>, 8> t{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t rest = b;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? 0x82F63B78 : 0);
    t[0][b] = rest;
  }
  for (int k = 1; k < 8; ++k)
    for (int b = 0; b < 256; ++b) t[k][b] = t[k - 1][b] >> 8 ^ t[0][t[k - 1][b] & 255];
  return t;
}();

}  // namespace

// Eight bytes at a step ("slicing by 8": Kounavis and Berry, 2005).
std::uint32_t scalar::crc32c(const std::uint8_t* data, std::size_t n, std::uint32_t crc) {
  crc = ~crc;
  for (; n >= 8; n -= 8, data += 8) {
    const std::uint64_t word = load64(data) ^ crc;
    crc = 0;
    for (int k = 0; k < 8; ++k) crc ^= table[7 - k][word >> (8 * k) & 255];
  }
  for (; n; --n, ++data) crc = crc >> 8 ^ table[0][(crc ^ *data) & 255];
  return ~crc;
}

}  // namespace sparcml
