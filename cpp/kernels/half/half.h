// Converts float32 to and from float16 and bfloat16, rounding to nearest even. Values that are
// too large become infinite, denormals are kept, and every NaN becomes the canonical quiet one
// (0x7e00, 0x7fc0 and 0x7fc00000).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

SPARCML_KERNEL(void, to_half, const float* values, std::size_t n, std::uint16_t* out);
SPARCML_KERNEL(void, from_half, const std::uint16_t* bits, std::size_t n, float* out);
SPARCML_KERNEL(void, to_bfloat, const float* values, std::size_t n, std::uint16_t* out);
SPARCML_KERNEL(void, from_bfloat, const std::uint16_t* bits, std::size_t n, float* out);

}  // namespace sparcml
