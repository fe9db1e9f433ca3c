// The check of a bitmap that was received.
//
// op.h explains the anonymous namespace.
#pragma once

#include "kernels/bitmap/bitmap.h"
#include "kernels/ones.h"

namespace sparcml {
namespace {

inline const char* check_bitmap(const std::uint8_t* data, std::size_t size, std::size_t n,
                                std::uint32_t blocks) {
  if (size != bitmap_nbytes(blocks)) return "bitmap: section must have one bit per block";
  if (blocks % 64 && load64(data + size - 8) >> (blocks % 64))
    return "bitmap: index out of bounds";
  if (count_ones(data, size / 8) != n) return "bitmap: section has a wrong number of entries";
  return nullptr;
}

}  // namespace
}  // namespace sparcml
