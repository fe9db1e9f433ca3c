#include "kernels/gap/generic.h"

namespace sparcml::scalar {

std::size_t gap_nbytes(const std::uint32_t* indices, std::size_t n, unsigned r) {
  return section_bytes(indices, n, r);
}

void gap_encode(const std::uint32_t* indices, std::size_t n, unsigned r, std::uint8_t* out) {
  if (n == 0) return;
  store64(out, r);
  const BitWriter low(out + 8), high(out + 8 + 8 * words(std::uint64_t{n} * r));
  encode_low(low, indices, 0, n, r).finish();
  encode_high(high, indices, 0, n, r).finish();
}

const char* gap_decode(const std::uint8_t* data, std::size_t size, std::size_t n,
                       std::uint32_t blocks, std::uint32_t* out) {
  return decode_section(data, size, n, blocks, out, add_low);
}

}  // namespace sparcml::scalar
