#include "kernels/grid/generic.h"

namespace sparcml::scalar {

void to_grid(const float* values, std::size_t n, Grid grid, std::uint64_t seed,
             std::uint8_t* code) {
  encode_buckets<ScalarLoops, Steps>(values, n, grid, seed, code);
}

void from_grid(const std::uint8_t* code, std::size_t n, Grid grid, float* values) {
  decode_buckets<ScalarLoops, Values>(code, n, grid, values);
}

void to_grid_from(const float* values, std::size_t n, Grid grid, std::uint64_t seed,
                  std::uint64_t first, std::uint8_t* norms, std::uint8_t* codes) {
  encode_some<ScalarLoops, Steps>(values, n, grid, seed, first, norms, codes);
}

void from_grid_to(const std::uint8_t* norms, const std::uint8_t* codes, std::size_t n,
                  Grid grid, float* values) {
  decode_some<ScalarLoops, Values>(norms, codes, n, grid, values);
}

}  // namespace sparcml::scalar
