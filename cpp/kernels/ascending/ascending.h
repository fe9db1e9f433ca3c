// Checks the indices of a stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

// Returns the length of the longest prefix that ascends strictly and is below `blocks`.
SPARCML_KERNEL(std::size_t, ascending_prefix, const std::uint32_t* indices, std::size_t n,
               std::uint32_t blocks);

}  // namespace sparcml
