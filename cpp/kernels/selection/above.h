// All entries whose magnitude is at least a threshold.
//
// op.h explains the anonymous namespace.
#pragma once

#include "kernels/selection/squares.h"

namespace sparcml {
namespace {

// Writes entries while they fit, and counts all of them.
template <class T>
struct Above {
  EntryBuffer<T> buffer;
  Key<T> bound;
  std::size_t count = 0;

  template <class Source>
  void scan(Source& source, std::size_t size) {
    for (std::size_t start = 0; start < size; start += kWord) {
      const bool full = start + kWord <= size;
      const std::uint64_t mask =
          full ? source.word(start, bound) : source.tail(start, size - start, bound);
      const T* values = source.values + start;
      const std::size_t added = __builtin_popcountll(mask);
      const auto index = static_cast<std::uint32_t>(start);
      if (full && count + added + 8 <= buffer.size)
        spill_word(values, index, mask, added, buffer.indices + count, buffer.values + count);
      else if (count + added <= buffer.size)
        spill_exactly(values, index, mask, buffer.indices + count, buffer.values + count);
      count += added;
    }
  }
};

}  // namespace
}  // namespace sparcml
