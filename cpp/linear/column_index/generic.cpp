// One loop for all instruction sets, which differ in how bits are counted.
#include "linear/column_index/column_index.h"

namespace sparcml::SPARCML_NAMESPACE {

void column_positions(const std::uint32_t* columns, std::size_t count,
                      const std::uint64_t* bitmap, const std::uint32_t* before,
                      std::uint32_t* out) {
  const std::size_t parts = column_parts(count);
  for_parts(parts, [&](std::size_t part) {
    const std::size_t end = part_begin(count, parts, part + 1);
    for (std::size_t i = part_begin(count, parts, part); i < end; ++i) {
      const std::uint32_t column = columns[i];
      const std::uint64_t word = bitmap[column / 64], bit = std::uint64_t{1} << (column % 64);
      const auto position = before[column / 64] +
                            static_cast<std::uint32_t>(__builtin_popcountll(word & (bit - 1)));
      out[i] = word & bit ? position : kInactive;
    }
  });
}

}  // namespace sparcml::SPARCML_NAMESPACE
