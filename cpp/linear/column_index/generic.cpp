// One loop for all instruction sets, which differ in how bits are counted.
#include "linear/column_index/column_index.h"

namespace sparcml {
namespace {

inline void positions_any(const std::uint32_t* columns, std::size_t count,
                          const std::uint64_t* bitmap, const std::uint32_t* before,
                          std::uint32_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t column = columns[i];
    const std::uint64_t word = bitmap[column / 64], bit = std::uint64_t{1} << (column % 64);
    const auto position = before[column / 64] +
                          static_cast<std::uint32_t>(__builtin_popcountll(word & (bit - 1)));
    out[i] = word & bit ? position : kInactive;
  }
}

}  // namespace
}  // namespace sparcml

namespace sparcml::SPARCML_NAMESPACE {

void column_positions(const std::uint32_t* columns, std::size_t count,
                      const std::uint64_t* bitmap, const std::uint32_t* before,
                      std::uint32_t* out) {
  positions_any(columns, count, bitmap, before, out);
}

}  // namespace sparcml::SPARCML_NAMESPACE
