#include "kernels/grid/generic.h"

namespace sparcml::scalar {

void to_grid(const float* values, std::size_t n, Grid grid, std::uint64_t seed,
             std::uint8_t* code) {
  encode_buckets<ScalarLoops, Steps>(values, n, grid, seed, code);
}

void from_grid(const std::uint8_t* code, std::size_t n, Grid grid, float* values) {
  decode_buckets<ScalarLoops, Values>(code, n, grid, values);
}

}  // namespace sparcml::scalar
