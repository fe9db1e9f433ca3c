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

  void scan(const T* values, std::size_t from, std::size_t to) {
    for (std::size_t start = from; start < to; start += kWord) {
      const bool full = start + kWord <= to;
      const std::uint64_t mask = full ? word_above(values + start, bound)
                                      : tail_above(values + start, to - start, bound);
      const std::size_t more = __builtin_popcountll(mask);
      const auto index = static_cast<std::uint32_t>(start);
      if (full && found + more + 8 <= room.size)
        spill_word(values + start, index, mask, more, room.indices + found,
                   room.values + found);
      else if (found + more <= room.size)
        spill_exactly(values + start, index, mask, room.indices + found, room.values + found);
      found += more;
    }
  }
};

template <class T>
std::size_t at_least_any(const T* values, std::size_t size, T threshold, Room<T> room) {
  Above<T> above{room, rank(threshold) - 1};
  above.scan(values, 0, size);
  return above.found;
}

template <class T>
double owe_at_least_any(Owing<T> owing, T threshold, Room<T> room, std::size_t& found) {
  Above<T> above{room, rank(threshold) - 1};
  Owe<T> owe{owing};
  for (std::size_t start = 0; start < owing.size; start = owe.done) {
    owe.until(start + 1);
    above.scan(owing.out, start, owe.done);
  }
  found = above.found;
  return owe.squares;
}

}  // namespace
}  // namespace sparcml
