// Traverses many rows together, one range of columns after the other, so that arrays with one
// value per column, such as weights and sums, are accessed within a range that fits in the
// cache.
#pragma once

#include <algorithm>
#include <vector>

#include "linear/models/fetch.h"

namespace sparcml::linear {

constexpr int kMinBits = 12, kMaxBits = 18;  // columns of a range: 4 K to 256 K
constexpr std::size_t kVisit = 64;  // target for the mean number of entries of a row in a range
constexpr std::size_t kAhead = 6;   // rows to prefetch

template <class T>
struct Cursor {
  const std::uint32_t *at, *end;
  const T* value;
  std::size_t row;  // among the chosen rows
};

// The division of columns into ranges, by the number of entries.
struct Ranges {
  int bits;      // a range has 2^bits columns
  double visit;  // entries of a row in a range, on average

  Ranges(std::size_t features, std::size_t rows, std::size_t entries) : bits(kMinBits) {
    const double columns_an_entry = static_cast<double>(features) * rows / (entries + 1.0);
    while (bits < kMaxBits && size() < kVisit * columns_an_entry) ++bits;
    visit = size() / columns_an_entry;
  }

  std::size_t size() const { return std::size_t{1} << bits; }
};

// Prefetches the next lines of a row, about as much as a visit reads.
template <class T>
inline void fetch(const Cursor<T>& c) {
  for (std::size_t i = 0; i < 3; ++i) {
    __builtin_prefetch(reinterpret_cast<const char*>(c.at) + i * kLine);
    __builtin_prefetch(reinterpret_cast<const char*>(c.value) + i * kLine);
  }
}

// Calls visit(cursor, first column of the range, first column after it) for each row in order,
// which returns the number of entries of the row in the range. Calls start(first column) before
// and done(first column) after each range. Skips ranges without entries.
template <class T, class Start, class Visit, class Done>
void by_ranges(std::vector<Cursor<T>>& cursors, const Ranges& ranges, Start start, Visit visit,
               Done done) {
  std::uint64_t base = 0;
  const std::uint64_t range = ranges.size();
  while (!cursors.empty()) {
    std::uint64_t next = UINT64_MAX;
    const std::uint64_t limit = base + range;
    std::size_t left = 0;
    start(base);
    for (std::size_t i = 0; i < cursors.size(); ++i) {
      if (i + kAhead < cursors.size()) fetch(cursors[i + kAhead]);
      const Cursor<T> c = cursors[i];
      const std::size_t count = visit(c, base, limit);
      const std::uint32_t* stop = c.at + count;
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
