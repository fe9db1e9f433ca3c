#include <immintrin.h>

#include "kernels/bits.h"
#include "kernels/crc/crc.h"

namespace sparcml {
namespace {

// Polynomials modulo the CRC polynomial, reflected: the highest bit is x^0.
constexpr std::uint32_t times_x(std::uint32_t a) { return a >> 1 ^ (a & 1 ? 0x82F63B78 : 0); }

constexpr std::uint32_t times(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (; a; a <<= 1, b = times_x(b)) product ^= a >> 31 ? b : 0;
  return product;
}

constexpr std::uint32_t power_of_x(std::size_t power) {
  if (power == 0) return 0x80000000;
  const std::uint32_t root = power_of_x(power / 2), square = times(root, root);
  return power % 2 ? times_x(square) : square;
}

// Returns the remainder after `Bytes` zero bytes. The product of two reflected numbers is one
// bit too low, and the crc32 instruction multiplies by x^32; hence 33 powers less.
template <std::size_t Bytes>
inline std::uint64_t advance(std::uint64_t crc) {
  constexpr long long factor = power_of_x(8 * Bytes - 33);
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(crc)),
                                               _mm_cvtsi64_si128(factor), 0);
  return _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product)));
}

// Handles three segments of `Bytes` at once: the instruction has a latency of three cycles, and
// one can start in each cycle.
template <std::size_t Bytes>
inline std::uint64_t three_segments(std::uint64_t a, const std::uint8_t*& data,
                                    std::size_t& n) {
  for (; n >= 3 * Bytes; n -= 3 * Bytes, data += 3 * Bytes) {
    std::uint64_t b = 0, c = 0;
    for (std::size_t i = 0; i < Bytes; i += 8) {
      a = _mm_crc32_u64(a, load64(data + i));
      b = _mm_crc32_u64(b, load64(data + Bytes + i));
      c = _mm_crc32_u64(c, load64(data + 2 * Bytes + i));
    }
    a = advance<2 * Bytes>(a) ^ advance<Bytes>(b) ^ c;
  }
  return a;
}

}  // namespace

std::uint32_t avx2::crc32c(const std::uint8_t* data, std::size_t n, std::uint32_t crc) {
  std::uint64_t rest = ~crc;
  rest = three_segments<16384>(rest, data, n);  // long segments suit the prefetcher
  rest = three_segments<1024>(rest, data, n);
  rest = three_segments<128>(rest, data, n);
  for (; n >= 8; n -= 8, data += 8) rest = _mm_crc32_u64(rest, load64(data));
  for (; n; --n, ++data) rest = _mm_crc32_u8(static_cast<std::uint32_t>(rest), *data);
  return ~static_cast<std::uint32_t>(rest);
}

}  // namespace sparcml
