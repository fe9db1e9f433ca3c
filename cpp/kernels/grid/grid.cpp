#include "kernels/grid/grid.h"

namespace sparcml {

void to_grid(const float* values, std::size_t n, Grid grid, std::uint64_t seed,
             std::uint8_t* code) {
  SPARCML_PICK(to_grid)(values, n, grid, seed, code);
}

void from_grid(const std::uint8_t* code, std::size_t n, Grid grid, float* values) {
  SPARCML_PICK(from_grid)(code, n, grid, values);
}

void from_grid_to(const std::uint8_t* norms, const std::uint8_t* codes, std::size_t n,
                  Grid grid, float* values) {
  SPARCML_PICK(from_grid_to)(norms, codes, n, grid, values);
}

}  // namespace sparcml
