// The same loop for any instruction set: what differs is how bits are counted.
#include "kernels/column_index/column_index.h"

namespace sparcml {
namespace {

inline void positions_any(const std::uint32_t* numbers, std::size_t count,
                          const std::uint64_t* plane, const std::uint32_t* before,
                          std::uint32_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t number = numbers[i];
    const std::uint64_t word = plane[number / 64], bit = std::uint64_t{1} << (number % 64);
    const auto place = before[number / 64] +
                       static_cast<std::uint32_t>(__builtin_popcountll(word & (bit - 1)));
    out[i] = word & bit ? place : kInactive;
  }
}

}  // namespace
}  // namespace sparcml

namespace sparcml::SPARCML_NAMESPACE {

void column_positions(const std::uint32_t* numbers, std::size_t count,
                      const std::uint64_t* plane, const std::uint32_t* before,
                      std::uint32_t* out) {
  positions_any(numbers, count, plane, before, out);
}

}  // namespace sparcml::SPARCML_NAMESPACE
