#include "kernels/half/generic.h"

namespace sparcml::scalar {

void to_half(const float* values, std::size_t n, std::uint16_t* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = half_of(values[i]);
}

void from_half(const std::uint16_t* bits, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = float_of_half(bits[i]);
}

void to_bfloat(const float* values, std::size_t n, std::uint16_t* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = bfloat_of(values[i]);
}

void from_bfloat(const std::uint16_t* bits, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = float_of_bfloat(bits[i]);
}

}  // namespace sparcml::scalar
