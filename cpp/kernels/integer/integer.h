// Integer multiples of a step, packed: the value k * step with |k| <= max_multiple has the code
// k + max_multiple in `width` bits (the fewest that suffice), lowest bit first, without gaps.
// All ones stand for values that are not finite and decode to NaN: the number of codes in use,
// 2 * max_multiple + 1, is odd, so that one is always left over.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

struct Multiples {
  float step;
  std::uint32_t max_multiple;
  unsigned width;  // at max_multiple 16
};

// Both return n, or if a value is not a multiple (within the rounding of a sum of max_multiple
// steps), too large, or a code not in use, a number of values before it that are valid.
// `packed` has (n * width + 7) / 8 bytes.
SPARCML_KERNEL(std::size_t, to_integer, const float* v, std::size_t n, Multiples multiples,
               std::uint8_t* packed);
SPARCML_KERNEL(std::size_t, from_integer, const std::uint8_t* packed, std::size_t n,
               Multiples multiples, float* v);

}  // namespace sparcml
