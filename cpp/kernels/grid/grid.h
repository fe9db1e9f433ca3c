// Stochastic rounding to a uniform grid: the codes of QSGD and TernGrad.
//
// Each bucket of values has a norm: its largest magnitude, its l2 norm, or a given one. A value
// v becomes the integer
//
//   floor(x + u),   x = s v / norm,   u random in [0, 1)
//
// between -s and s (x beyond that is clipped), whose mean is x. x is rounded to 24 bits after
// the point, as many as u has, which is not coarser than float32 at the first step. So a value
// on the grid is exact, except for the rounding of x in float32.
//
// buckets.h describes the layout of the code. It decodes to code * (norm / s).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/buckets.h"
#include "kernels/isa.h"

namespace sparcml {

struct Grid : Buckets {
  unsigned levels;  // s, at least 1 and at most 2^(bits - 1) - 1
};

// `code` has 4 bytes per bucket and n * bits bits, padded to a byte.
SPARCML_KERNEL(void, to_grid, const float* values, std::size_t n, Grid grid, std::uint64_t seed,
               std::uint8_t* code);
SPARCML_KERNEL(void, from_grid, const std::uint8_t* code, std::size_t n, Grid grid,
               float* values);

// The functions with `first` and `norms` handle a block of a longer vector that starts at
// bucket `first`, in the calling thread; its sections begin at `norms` and `codes`.
SPARCML_KERNEL(void, to_grid_from, const float* values, std::size_t n, Grid grid,
               std::uint64_t seed, std::uint64_t first, std::uint8_t* norms,
               std::uint8_t* codes);
SPARCML_KERNEL(void, from_grid_to, const std::uint8_t* norms, const std::uint8_t* codes,
               std::size_t n, Grid grid, float* values);

}  // namespace sparcml
