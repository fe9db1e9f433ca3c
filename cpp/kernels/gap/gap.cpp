#include "kernels/gap/gap.h"

namespace sparcml {

unsigned gap_parameter(std::size_t n, std::uint32_t last) {
  // Gaps of random indices are geometric: with x = P(gap >= 2^r) they need r + 1 / (1 - x)
  // bits, and r + 1 is better while x > 1 / phi. At density p that is 2^r < log(phi) / -log(1 -
  // p), and 1 / -log(1 - p) is 1/p - 1/2 up to a tenth. log(phi) = 31537 / 2^16.
  const std::uint64_t range = std::uint64_t{last} + 1;
  const std::uint64_t bound = 31537 * (2 * range - n);
  unsigned r = 0;
  while (r < 31 && (std::uint64_t{n} << (r + 17)) < bound) ++r;
  return r;
}

std::size_t gap_nbytes(const std::uint32_t* indices, std::size_t n, unsigned r) {
  return SPARCML_PICK(gap_nbytes)(indices, n, r);
}

void gap_encode(const std::uint32_t* indices, std::size_t n, unsigned r, std::uint8_t* out) {
  SPARCML_PICK(gap_encode)(indices, n, r, out);
}

const char* gap_decode(const std::uint8_t* data, std::size_t size, std::size_t n,
                       std::uint32_t blocks, std::uint32_t* out) {
  return SPARCML_PICK(gap_decode)(data, size, n, blocks, out);
}

}  // namespace sparcml
