#include "kernels/natural/natural.h"

namespace sparcml {

void to_natural(const float* values, std::size_t n, std::uint64_t seed, std::uint8_t* code) {
  SPARCML_PICK(to_natural)(values, n, seed, code);
}

void from_natural(const std::uint8_t* code, std::size_t n, float* values) {
  SPARCML_PICK(from_natural)(code, n, values);
}

}  // namespace sparcml
