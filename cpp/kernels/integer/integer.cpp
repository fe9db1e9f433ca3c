#include "kernels/integer/integer.h"

namespace sparcml {

std::size_t to_integer(const float* v, std::size_t n, Multiples multiples,
                       std::uint8_t* packed) {
  return SPARCML_PICK(to_integer)(v, n, multiples, packed);
}

std::size_t from_integer(const std::uint8_t* packed, std::size_t n, Multiples multiples,
                         float* v) {
  return SPARCML_PICK(from_integer)(packed, n, multiples, v);
}

}  // namespace sparcml
