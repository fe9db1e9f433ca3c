// Sums by column of one range; they are zero between ranges and calls.
#pragma once

#include <vector>

#include "kernels/spill.h"

namespace sparcml::linear {

// If few columns of a range have entries, `marking` sets a bit for each, and only those sums
// are scanned; otherwise all are. Several entries are read before any is written, so that no
// read waits for a write. Isa::differs returns a mask of the nonzeros among 64 values, and
// Isa::clear sets them to zero.
template <class Isa, class T, bool marking>
class Sums {
 public:
  Sums(std::vector<T>& sums, std::vector<std::uint64_t>& marks, std::size_t range)
      : range_(range) {
    if (sums.size() < range) sums.resize(range);
    if (marks.size() < range / kWord) marks.resize(range / kWord);
    sums_ = sums.data(), marks_ = marks.data();
  }

  // The columns of a row are distinct.
  void add(const std::uint32_t* columns, const T* values, std::size_t count, T slope) {
    const std::uint32_t mask = static_cast<std::uint32_t>(range_ - 1);
    std::size_t k = 0;
    for (; k + kLanes <= count; k += kLanes) {
      T next[kLanes];
      for (std::size_t i = 0; i < kLanes; ++i)
        next[i] = sums_[columns[k + i] & mask] + slope * values[k + i];
      for (std::size_t i = 0; i < kLanes; ++i) put(columns[k + i] & mask, next[i]);
    }
    for (; k < count; ++k) {
      const std::size_t at = columns[k] & mask;
      put(at, sums_[at] + slope * values[k]);
    }
  }

  // Writes the nonzeros in ascending order and resets them; the output holds this many.
  std::size_t drain(std::uint64_t base, std::size_t room, std::uint32_t* indices, T* values) {
    std::size_t n = 0;
    const std::uint32_t first = static_cast<std::uint32_t>(base);
    for (std::size_t w = 0; w < range_ / kWord; w += kLanes) {
      if (marking && !any(marks_ + w)) continue;
      for (std::size_t i = w; i < w + kLanes; ++i) {
        const std::uint32_t start = first + static_cast<std::uint32_t>(i * kWord);
        T* const sums = sums_ + i * kWord;
        n += marking ? take(sums, marks_[i], start, indices + n, values + n)
                     : take_all(sums, start, room - n, indices + n, values + n);
      }
    }
    return n;
  }

 private:
  static constexpr std::size_t kLanes = 8;  // spill_many() may write this many too many

  static bool any(const std::uint64_t* eight) {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < kLanes; ++i) all |= eight[i];
    return all;
  }

  static std::size_t take(T* sums, std::uint64_t& marks, std::uint32_t start,
                          std::uint32_t* indices, T* values) {
    std::size_t n = 0;
    for (; marks; marks &= marks - 1) {
      const std::uint32_t at = static_cast<std::uint32_t>(__builtin_ctzll(marks));
      const T sum = sums[at];
      sums[at] = 0;
      if (sum == 0) continue;
      indices[n] = start + at;
      values[n++] = sum;
    }
    return n;
  }

  static std::size_t take_all(T* sums, std::uint32_t start, std::size_t room,
                              std::uint32_t* indices, T* values) {
    const std::uint64_t found = Isa::differs(sums);
    const std::size_t more = static_cast<std::size_t>(__builtin_popcountll(found));
    if (more + kLanes <= room)
      spill_many(sums, start, found, more, indices, values);
    else
      spill_exactly(sums, start, found, indices, values);
    Isa::clear(sums);
    return more;
  }

  void put(std::size_t at, T sum) {
    sums_[at] = sum;
    if (marking) marks_[at / kWord] |= std::uint64_t{1} << (at % kWord);
  }

  std::size_t range_;
  T* sums_;
  std::uint64_t* marks_;
};

}  // namespace sparcml::linear
