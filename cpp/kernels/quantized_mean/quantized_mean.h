// The mean of quantized vectors in two passes over memory, one before and one after the codes
// are exchanged. Blocks that fit into the first-level cache go through the loops of other
// kernels one after the other, so that all bits are theirs.
#pragma once

#include "kernels/grid/grid.h"

namespace sparcml {

constexpr std::size_t kMaxBucket = 2048;  // of grids here, which must be a multiple of 8

// What the first pass finds in the values that it encodes.
struct Found {
  std::size_t nonzeros = 0;  // values other than +0.0
  bool finite = true;
};

// Writes the code of scale residual + gradient, and the sum itself to `corrected`, which may be
// the residual. Without a residual it encodes the gradient.
struct CorrectedGradient {
  const float* residual;  // or nullptr
  const float* gradient;
  float* corrected;
  std::size_t size;
  float scale;
};
Found to_grid_corrected(CorrectedGradient input, Grid grid, std::uint64_t seed,
                        std::uint8_t* code);

// Writes the mean of the vectors of `ranks` codes, added in their order, and subtracts the
// vector of code `own` from the corrected gradient, unless that is nullptr.
void mean_from_grid(const std::uint8_t* const* codes, std::size_t ranks, std::size_t own,
                    std::size_t n, Grid grid, float* mean, float* corrected);

// The loops over one block of these passes: the sum, and the mean that the last vector
// completes.
SPARCML_KERNEL(Found, correct, CorrectedGradient input);
SPARCML_KERNEL(void, add_last, const float* sum, const float* last, float ranks,
               const float* seen, std::size_t n, float* mean, float* corrected);

}  // namespace sparcml
