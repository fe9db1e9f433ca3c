// Parts of the columns of some rows, for several threads.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/threads/pool.h"
#include "linear/models/ranges.h"

namespace sparcml::linear {
namespace {

constexpr std::size_t kWorth = 1 << 16;  // entries for which further threads are woken
constexpr std::size_t kParts = 2;        // per thread, since some take longer

inline std::size_t part_count(std::size_t entries) {
  return entries < kWorth || threads() == 1 ? 1 : kParts * threads();
}

// Entries of a gradient in some columns, from `first` up to `limit`.
template <class T>
struct Part {
  std::uint64_t first, limit;
  std::size_t nnz, offset;
  std::vector<std::uint32_t> indices;
  std::vector<T> values;
};

// Divides the columns into parts with about as many entries each, at borders of ranges, by a
// sample of the entries.
template <class T>
void divide(std::vector<Part<T>>& parts, const std::vector<Cursor<T>>& cursors,
            const Ranges& ranges, std::size_t nnz, std::size_t count) {
  std::vector<std::uint32_t> sample;
  const std::size_t stride = nnz / 4096 + 1;
  for (const Cursor<T>& c : cursors)
    for (const std::uint32_t* at = c.at; at < c.end;
         at += std::min<std::ptrdiff_t>(stride, c.end - at))
      sample.push_back(*at);
  std::sort(sample.begin(), sample.end());
  parts.resize(count);
  std::uint64_t first = 0;
  for (std::size_t p = 0; p < count; ++p) {
    const std::size_t at = part_begin(sample.size(), count, p + 1);
    const std::uint64_t limit =
        at < sample.size() ? sample[at] & ~std::uint64_t{ranges.size() - 1} : UINT64_MAX;
    parts[p].first = first;
    parts[p].limit = first = std::max(first, p + 1 < count ? limit : UINT64_MAX);
  }
}

// Sets cursors to the entries of a part and returns the number of entries.
template <class T>
std::size_t restrict_to(std::vector<Cursor<T>>& some, const std::vector<Cursor<T>>& all,
                        const Part<T>& part) {
  std::size_t nnz = 0;
  some.clear();
  for (const Cursor<T>& c : all) {
    const std::uint32_t* const from = std::lower_bound(c.at, c.end, part.first);
    const std::uint32_t* const to = std::lower_bound(from, c.end, part.limit);
    if (from < to) some.push_back({from, to, c.value + (from - c.at), c.row});
    nnz += static_cast<std::size_t>(to - from);
  }
  return nnz;
}

}  // namespace
}  // namespace sparcml::linear
