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

// The lowest `count` ones of a word.
inline std::uint64_t lowest(std::uint64_t word, std::size_t count) {
  if (static_cast<std::size_t>(__builtin_popcountll(word)) <= count) return word;
  std::uint64_t kept = 0;
  for (; count; --count, word &= word - 1) kept |= word & -word;
  return kept;
}

// Moves those of the entries at `from` that have a one in the mask to `to`, which is not later.
template <class T>
inline void move_tail(Room<T> entries, std::size_t from, std::uint64_t mask, std::size_t to) {
  for (; mask; mask &= mask - 1, ++to) {
    const std::size_t at = from + __builtin_ctzll(mask);
    entries.indices[to] = entries.indices[at];
    entries.values[to] = entries.values[at];
  }
}

template <class T>
inline void move_word(Room<T> entries, std::size_t from, std::uint64_t mask, std::size_t to) {
  move_tail(entries, from, mask, to);
}

#ifdef __AVX2__
// Eight at a time: what is written beyond the last one was read before.
template <>
inline void move_word(Room<float> entries, std::size_t from, std::uint64_t mask,
                      std::size_t to) {
  const auto* indices = reinterpret_cast<const int*>(entries.indices);
  for (std::size_t i = from; i < from + kWord; i += 8, mask >>= 8) {
    const auto* row = reinterpret_cast<const __m128i*>(byte_ones[mask & 0xff].data());
    const __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64(row));
    const __m256i index = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(indices + i));
    const __m256 value = _mm256_loadu_ps(entries.values + i);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(entries.indices + to),
                        _mm256_permutevar8x32_epi32(index, order));
    _mm256_storeu_ps(entries.values + to, _mm256_permutevar8x32_ps(value, order));
    to += _mm_popcnt_u32(mask & 0xff);
  }
}
#endif

// Keeps the entries above a rank and the first that equal it, k in all.
template <class T>
void keep_above(Room<T> entries, std::size_t k, Rank<T> kth) {
  const T* values = entries.values;
  std::size_t equal = k, o = 0, i = 0;
  for (std::size_t j = 0; j < entries.size; ++j) equal -= rank(values[j]) > kth;
  const auto chosen = [&](std::uint64_t above, std::uint64_t least) {
    const std::uint64_t ties = lowest(least & ~above, equal);
    equal -= __builtin_popcountll(ties);
    return above | ties;
  };
  for (; i + kWord <= entries.size; i += kWord) {
    const std::uint64_t mask =
        chosen(word_above(values + i, kth), word_above(values + i, kth - 1));
    move_word(entries, i, mask, o);
    o += __builtin_popcountll(mask);
  }
  const std::size_t rest = entries.size - i;
  const std::uint64_t mask =
      chosen(tail_above(values + i, rest, kth), tail_above(values + i, rest, kth - 1));
  move_tail(entries, i, mask, o);
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
