// All entries of at least a magnitude.
//
// The anonymous namespace is on purpose: see op.h.
#pragma once

#include "kernels/select/squares.h"

namespace sparcml {
namespace {

// Writes while there is room, and counts on.
template <class T>
struct Above {
  Room<T> room;
  Rank<T> bound;
  std::size_t found = 0;

  template <class Source>
  void scan(Source& source, std::size_t size) {
    for (std::size_t start = 0; start < size; start += kWord) {
      const bool whole = start + kWord <= size;
      const std::uint64_t mask =
          whole ? source.word(start, bound) : source.tail(start, size - start, bound);
      const T* values = source.values + start;
      const std::size_t more = __builtin_popcountll(mask);
      const auto index = static_cast<std::uint32_t>(start);
      if (whole && found + more + 8 <= room.size)
        spill_word(values, index, mask, more, room.indices + found, room.values + found);
      else if (found + more <= room.size)
        spill_exactly(values, index, mask, room.indices + found, room.values + found);
      found += more;
    }
  }
};

template <class T>
std::size_t at_least_any(const T* values, std::size_t size, T threshold, Room<T> room) {
  Above<T> above{room, rank(threshold) - 1};
  Whole<T> whole{values};
  above.scan(whole, size);
  return above.found;
}

template <class T>
double owe_at_least_any(Owing<T> owing, T threshold, Room<T> room, std::size_t& found) {
  Above<T> above{room, rank(threshold) - 1};
  Owe<T> owe(owing);
  above.scan(owe, owing.size);
  found = above.found;
  return owe.squares();
}

}  // namespace
}  // namespace sparcml
