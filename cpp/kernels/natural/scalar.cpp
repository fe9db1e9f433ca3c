#include "kernels/natural/generic.h"

namespace sparcml::scalar {

void to_natural(const float* values, std::size_t n, std::uint64_t seed, std::uint8_t* code) {
  Random random(seed, 0);
  rest_to_natural(values, 0, n, random, code);
}

void from_natural(const std::uint8_t* code, std::size_t n, float* values) {
  rest_from_natural(code, 0, n, values);
}

}  // namespace sparcml::scalar
