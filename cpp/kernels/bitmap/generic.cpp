#include "kernels/bitmap/generic.h"

namespace sparcml::SPARCML_NAMESPACE {

const char* bitmap_encode(const std::uint32_t* indices, std::size_t n, std::uint32_t blocks,
                          std::uint8_t* out) {
  return encode_bits(indices, n, blocks, out);
}

const char* bitmap_decode(const std::uint8_t* data, std::size_t size, std::size_t n,
                          std::uint32_t blocks, std::uint32_t* out) {
  return decode_bits(data, size, n, blocks, out);
}

}  // namespace sparcml::SPARCML_NAMESPACE
