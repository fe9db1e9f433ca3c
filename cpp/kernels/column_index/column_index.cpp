#include "kernels/column_index/column_index.h"

namespace sparcml {

void mark_columns(const std::uint32_t* columns, std::size_t count, std::uint64_t* bitmap) {
  for (std::size_t i = 0; i < count; ++i)
    bitmap[columns[i] / 64] |= std::uint64_t{1} << (columns[i] % 64);
}

std::size_t count_columns(const std::uint64_t* bitmap, std::size_t words,
                          std::uint32_t* before) {
  std::size_t sum = 0;
  for (std::size_t w = 0; w < words; ++w) {
    before[w] = static_cast<std::uint32_t>(sum);
    sum += static_cast<std::size_t>(__builtin_popcountll(bitmap[w]));
  }
  return sum;
}

void column_positions(const std::uint32_t* columns, std::size_t count,
                      const std::uint64_t* bitmap, const std::uint32_t* before,
                      std::uint32_t* out) {
  SPARCML_PICK(column_positions)(columns, count, bitmap, before, out);
}

}  // namespace sparcml
