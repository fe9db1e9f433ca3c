// Are these the indices of a stream?
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

// The first position whose index is not greater than the one before it, or not below `blocks`;
// n if there is none.
std::size_t ascending_prefix(const std::uint32_t* indices, std::size_t n, std::uint32_t blocks);

namespace scalar {
std::size_t ascending_prefix(const std::uint32_t* indices, std::size_t n, std::uint32_t blocks);
}
namespace avx2 {
std::size_t ascending_prefix(const std::uint32_t* indices, std::size_t n, std::uint32_t blocks);
}

}  // namespace sparcml
