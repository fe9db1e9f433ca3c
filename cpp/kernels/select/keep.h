// The k largest of some entries, in place and in order.
//
// The anonymous namespace is on purpose: see op.h.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/select/magnitude.h"

namespace sparcml {
namespace {

constexpr int kDigit = 12;  // bits that one pass of the radix search settles
constexpr std::size_t kFew = 256;

// The k-th largest rank of ranks that are all in [low, high], from the highest digit down.
template <class T>
Rank<T> kth_by_digits(const T* values, std::size_t size, std::size_t k, Rank<T> low,
                      Rank<T> high) {
  for (;;) {
    int shift = 0;
    while (Bits<T>(high - low) >> shift >> kDigit) ++shift;
    std::uint32_t counts[std::size_t{1} << kDigit] = {};
    for (std::size_t i = 0; i < size; ++i) {
      const Rank<T> r = rank(values[i]);
      if (r >= low && r <= high) ++counts[(r - low) >> shift];
    }
    std::size_t digit = static_cast<std::size_t>((high - low) >> shift);
    for (; counts[digit] < k; --digit) k -= counts[digit];
    low += static_cast<Rank<T>>(digit) << shift;
    if (shift == 0) return low;
    high = std::min<Rank<T>>(high, low + ((Rank<T>(1) << shift) - 1));
  }
}

// The k-th largest rank of some values; 1 <= k <= size.
template <class T>
Rank<T> kth_rank(const T* values, std::size_t size, std::size_t k) {
  if (size <= kFew) {
    Rank<T> ranks[kFew];
    for (std::size_t i = 0; i < size; ++i) ranks[i] = rank(values[i]);
    std::nth_element(ranks, ranks + (k - 1), ranks + size, std::greater<>());
    return ranks[k - 1];
  }
  Rank<T> low = kNone<T>, high = 0;
  for (std::size_t i = 0; i < size; ++i) {
    low = std::min(low, rank(values[i]));
    high = std::max(high, rank(values[i]));
  }
  return kth_by_digits(values, size, k, low, high);
}

// Keeps the entries above the bound and the first that equal it, k in all.
template <class T>
void keep_above(Room<T> entries, std::size_t k, Rank<T> kth) {
  std::size_t above = 0;
  for (std::size_t i = 0; i < entries.size; ++i) above += rank(entries.values[i]) > kth;
  std::size_t equal = k - above, o = 0;
  for (std::size_t i = 0; i < entries.size; ++i) {
    const T value = entries.values[i];
    const bool tied = (rank(value) == kth) & (equal > 0);
    entries.indices[o] = entries.indices[i];
    entries.values[o] = value;
    equal -= tied;
    o += (rank(value) > kth) | tied;
    if (o == k) break;
  }
}

// Keeps the k largest; returns the rank of the last of them.
template <class T>
Rank<T> keep_largest(Room<T> entries, std::size_t k) {
  const Rank<T> kth = kth_rank(entries.values, entries.size, k);
  if (entries.size > k) keep_above(entries, k, kth);
  return kth;
}

}  // namespace
}  // namespace sparcml
