#include "kernels/whole/whole.h"

namespace sparcml {

std::size_t to_whole(const float* v, std::size_t n, Grid grid, std::uint8_t* packed) {
  return SPARCML_PICK(to_whole)(v, n, grid, packed);
}

std::size_t from_whole(const std::uint8_t* packed, std::size_t n, Grid grid, float* v) {
  return SPARCML_PICK(from_whole)(packed, n, grid, v);
}

}  // namespace sparcml
