// Values at random on an even grid: QSGD's code, and TernGrad's.
//
// Each bucket of values has a norm: its largest magnitude, its length (the square root of the
// sum of squares), or one that was given. A value v becomes the whole number
//
//   floor(x + u),   x = s v / norm,   u random in [0, 1)
//
// between -s and s (x beyond that is clipped), which is x on average. x is rounded to 24 bits
// after the point, as many as u has: no coarser than float32 is at the first step. So a value
// on the grid stays where it is, but for float32's own rounding of x.
//
// The code is laid out as in buckets.h; decoding is code * (norm / s).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/buckets.h"
#include "kernels/isa.h"

namespace sparcml {

struct Grid : Buckets {
  unsigned levels;  // s, at least 1 and at most 2^(bits - 1) - 1
};

// `code` has 4 bytes a bucket and n * bits bits, padded to a byte.
void to_grid(const float* values, std::size_t n, Grid grid, std::uint64_t seed,
             std::uint8_t* code);
void from_grid(const std::uint8_t* code, std::size_t n, Grid grid, float* values);

namespace scalar {
void to_grid(const float* values, std::size_t n, Grid grid, std::uint64_t seed,
             std::uint8_t* code);
void from_grid(const std::uint8_t* code, std::size_t n, Grid grid, float* values);
}  // namespace scalar
namespace avx2 {
void to_grid(const float* values, std::size_t n, Grid grid, std::uint64_t seed,
             std::uint8_t* code);
void from_grid(const std::uint8_t* code, std::size_t n, Grid grid, float* values);
}  // namespace avx2

}  // namespace sparcml
