#include "kernels/whole/generic.h"

namespace sparcml::avx2 {

std::size_t to_whole(const float* v, std::size_t n, Grid grid, std::uint8_t* packed) {
  return all_to_whole(v, n, grid, packed);
}

std::size_t from_whole(const std::uint8_t* packed, std::size_t n, Grid grid, float* v) {
  return all_from_whole(packed, n, grid, v);
}

}  // namespace sparcml::avx2
