// Which numbers are in use, as a bit plane (see bitmap.h), and their places among those.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

constexpr std::uint32_t kInactive = UINT32_MAX;

// Sets the bits of the numbers.
void mark_columns(const std::uint32_t* numbers, std::size_t count, std::uint64_t* plane);

// How many bits are set before each word; returns how many there are.
std::size_t count_columns(const std::uint64_t* plane, std::size_t words, std::uint32_t* before);

// out[i] is how many bits are set before that of numbers[i], or kInactive if that is not set.
void column_positions(const std::uint32_t* numbers, std::size_t count,
                      const std::uint64_t* plane, const std::uint32_t* before,
                      std::uint32_t* out);

namespace scalar {
void column_positions(const std::uint32_t* numbers, std::size_t count,
                      const std::uint64_t* plane, const std::uint32_t* before,
                      std::uint32_t* out);
}  // namespace scalar
namespace avx2 {
void column_positions(const std::uint32_t* numbers, std::size_t count,
                      const std::uint64_t* plane, const std::uint32_t* before,
                      std::uint32_t* out);
}  // namespace avx2

}  // namespace sparcml
