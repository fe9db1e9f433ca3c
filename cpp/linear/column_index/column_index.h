// Active columns as a bitmap (see bitmap.h), and the positions of columns among them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

constexpr std::uint32_t kInactive = UINT32_MAX;

// Returns the largest column, 0 if there is none.
std::uint32_t largest_column(const std::uint32_t* columns, std::size_t count);

// Sets the bits of the columns.
void mark_columns(const std::uint32_t* columns, std::size_t count, std::uint64_t* bitmap);

// Writes the number of bits set before each word; returns the number of all.
std::size_t count_columns(const std::uint64_t* bitmap, std::size_t words,
                          std::uint32_t* before);

// Writes the number of bits set before that of columns[i], or kInactive if that is not set.
void column_positions(const std::uint32_t* columns, std::size_t count,
                      const std::uint64_t* bitmap, const std::uint32_t* before,
                      std::uint32_t* out);

namespace scalar {
void column_positions(const std::uint32_t* columns, std::size_t count,
                      const std::uint64_t* bitmap, const std::uint32_t* before,
                      std::uint32_t* out);
}  // namespace scalar
namespace avx2 {
void column_positions(const std::uint32_t* columns, std::size_t count,
                      const std::uint64_t* bitmap, const std::uint32_t* before,
                      std::uint32_t* out);
}  // namespace avx2

}  // namespace sparcml
