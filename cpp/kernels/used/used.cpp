#include "kernels/used/used.h"

namespace sparcml {

void mark(const std::uint32_t* numbers, std::size_t count, std::uint64_t* plane) {
  for (std::size_t i = 0; i < count; ++i)
    plane[numbers[i] / 64] |= std::uint64_t{1} << (numbers[i] % 64);
}

std::size_t count_before(const std::uint64_t* plane, std::size_t words, std::uint32_t* before) {
  std::size_t sum = 0;
  for (std::size_t w = 0; w < words; ++w) {
    before[w] = static_cast<std::uint32_t>(sum);
    sum += static_cast<std::size_t>(__builtin_popcountll(plane[w]));
  }
  return sum;
}

void renumber(const std::uint32_t* numbers, std::size_t count, const std::uint64_t* plane,
              const std::uint32_t* before, std::uint32_t* out) {
  SPARCML_PICK(renumber)(numbers, count, plane, before, out);
}

}  // namespace sparcml
