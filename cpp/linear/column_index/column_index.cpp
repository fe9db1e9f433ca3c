#include "linear/column_index/column_index.h"

#include <algorithm>
#include <vector>

#include "kernels/threads/pool.h"

namespace sparcml {
namespace {

constexpr std::size_t kWorth = 1 << 16;  // columns for which further threads are woken
constexpr std::size_t kParts = 4;        // per thread

std::size_t part_count(std::size_t columns) {
  return columns < kWorth || threads() == 1 ? 1 : kParts * threads();
}

// Calls work(part, first, count) for parts of the columns.
template <class Work>
void by_parts(std::size_t parts, std::size_t columns, Work work) {
  for_parts(parts, [&](std::size_t part) {
    const std::size_t from = part_begin(columns, parts, part);
    work(part, from, part_begin(columns, parts, part + 1) - from);
  });
}

}  // namespace

std::uint32_t largest_column(const std::uint32_t* columns, std::size_t count) {
  std::vector<std::uint32_t> found(part_count(count));
  by_parts(found.size(), count, [&](std::size_t part, std::size_t from, std::size_t some) {
    std::uint32_t largest = 0;
    for (std::size_t i = from; i < from + some; ++i) largest = std::max(largest, columns[i]);
    found[part] = largest;
  });
  return *std::max_element(found.begin(), found.end());
}

void mark_columns(const std::uint32_t* columns, std::size_t count, std::uint64_t* bitmap) {
  by_parts(part_count(count), count, [&](std::size_t, std::size_t from, std::size_t some) {
    for (std::size_t i = from; i < from + some; ++i) {
      // Most bits are set already, and other threads set bits of the same word.
      std::uint64_t* const word = bitmap + columns[i] / 64;
      const std::uint64_t bit = std::uint64_t{1} << (columns[i] % 64);
      if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
        __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
    }
  });
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
  by_parts(part_count(count), count, [&](std::size_t, std::size_t from, std::size_t some) {
    SPARCML_PICK(column_positions)(columns + from, some, bitmap, before, out + from);
  });
}

}  // namespace sparcml
