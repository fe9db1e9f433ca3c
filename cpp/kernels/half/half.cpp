#include "kernels/half/half.h"

namespace sparcml {

void to_half(const float* values, std::size_t n, std::uint16_t* out) {
  SPARCML_PICK(to_half)(values, n, out);
}

void from_half(const std::uint16_t* bits, std::size_t n, float* out) {
  SPARCML_PICK(from_half)(bits, n, out);
}

void to_bfloat(const float* values, std::size_t n, std::uint16_t* out) {
  SPARCML_PICK(to_bfloat)(values, n, out);
}

void from_bfloat(const std::uint16_t* bits, std::size_t n, float* out) {
  SPARCML_PICK(from_bfloat)(bits, n, out);
}

}  // namespace sparcml
