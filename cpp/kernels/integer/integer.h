// Whole multiples of one step, packed: value k * step with |k| <= most is k + most, in `width`
// bits (the fewest that do), lowest bit first, without gaps. All ones stand for what is not
// finite, and come back as NaN: 2 * most + 1 is odd, so that one code is always left over.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

struct Grid {
  float step;
  std::uint32_t most;
  unsigned width;  // at most 16
};

// Both return how many values there are before the first that is no multiple (within the
// rounding of a sum of `most` steps) or too large, or before the first code that is not in use.
// `packed` has (n * width + 7) / 8 bytes.
std::size_t to_integer(const float* v, std::size_t n, Grid grid, std::uint8_t* packed);
std::size_t from_integer(const std::uint8_t* packed, std::size_t n, Grid grid, float* v);

namespace scalar {
std::size_t to_integer(const float* v, std::size_t n, Grid grid, std::uint8_t* packed);
std::size_t from_integer(const std::uint8_t* packed, std::size_t n, Grid grid, float* v);
}  // namespace scalar
namespace avx2 {
std::size_t to_integer(const float* v, std::size_t n, Grid grid, std::uint8_t* packed);
std::size_t from_integer(const std::uint8_t* packed, std::size_t n, Grid grid, float* v);
}  // namespace avx2

}  // namespace sparcml
