// Many rows walked through together, one range of columns after the other: what has one place a
// column, such as sums, is then read and written within a range that fits in cache.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/linear/rows.h"

namespace sparcml::linear {

constexpr int kLeastBits = 12, kMostBits = 18;  // columns of a range: 4 K to 256 K
constexpr std::size_t kVisit = 32;  // entries of a row in a range, on average, that pay a visit

template <class T>
struct Cursor {
  const std::uint32_t *at, *end;
  const T* value;
  std::size_t row;  // among the chosen
};

// The power of two of columns that gives rows some entries in each range.
inline int range_bits(std::size_t features, std::size_t rows, std::size_t nnz) {
  const double wanted = static_cast<double>(features) * kVisit * rows / (nnz + 1.0);
  int bits = kLeastBits;
  while (bits < kMostBits && static_cast<double>(std::size_t{1} << bits) < wanted) ++bits;
  return bits;
}

// visit(row, columns, values, count) for a row's entries in a range, rows in order; then
// done(first column of the range).
template <class T, class Visit, class Done>
void by_ranges(std::vector<Cursor<T>>& cursors, int bits, Visit visit, Done done) {
  std::uint64_t base = 0;
  const std::uint64_t range = std::uint64_t{1} << bits;
  while (!cursors.empty()) {
    std::uint64_t next = UINT64_MAX;
    const std::uint64_t limit = base + range;
    std::size_t left = 0;
    for (std::size_t i = 0; i < cursors.size(); ++i) {
      if (i + 4 < cursors.size()) {
        __builtin_prefetch(cursors[i + 4].at);
        __builtin_prefetch(cursors[i + 4].value);
      }
      const Cursor<T> c = cursors[i];
      const std::uint32_t* stop = c.at;
      while (stop < c.end && *stop < limit) ++stop;
      const std::size_t count = static_cast<std::size_t>(stop - c.at);
      visit(c.row, c.at, c.value, count);
      if (stop < c.end) {
        next = std::min<std::uint64_t>(next, *stop);
        cursors[left++] = {stop, c.end, c.value + count, c.row};
      }
    }
    cursors.resize(left);
    done(base);
    base = next & ~(range - 1);
  }
}

}  // namespace sparcml::linear
