// The k largest of some entries, in place and in order.
//
// The anonymous namespace is on purpose: see op.h.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/select/magnitude.h"

namespace sparcml {
namespace {

constexpr int kDigit = 12;  // bits that one pass of the radix search settles
constexpr std::size_t kFew = 256, kMany = 1 << 14;

// The k-th largest rank of some values, from the highest digit down.
template <class T>
Rank<T> kth_by_digits(const T* values, std::size_t size, std::size_t k) {
  Rank<T> low = kNone<T>, high = 0;
  for (std::size_t i = 0; i < size; ++i) {
    low = std::min(low, rank(values[i]));
    high = std::max(high, rank(values[i]));
  }
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

// The same of a few values.
template <class T>
Rank<T> kth_of_few(const T* values, std::size_t size, std::size_t k) {
  std::vector<Rank<T>> ranks(size);
  for (std::size_t i = 0; i < size; ++i) ranks[i] = rank(values[i]);
  std::nth_element(ranks.begin(), ranks.begin() + (k - 1), ranks.end(), std::greater<>());
  return ranks[k - 1];
}

// Of many values: between which two of a sample it very likely lies (Floyd and Rivest).
template <class T>
std::pair<Rank<T>, Rank<T>> bracket(const T* values, std::size_t size, std::size_t k) {
  constexpr std::size_t count = 1 << 13, margin = 5 * 45;  // five standard deviations at most
  std::vector<Rank<T>> ranks(count);
  for (std::size_t i = 0; i < count; ++i) ranks[i] = rank(values[i * (size / count)]);
  const auto place = static_cast<std::size_t>(double(k) / double(size) * count);
  const auto nth = [&](std::size_t n) {
    std::nth_element(ranks.begin(), ranks.begin() + n, ranks.end(), std::greater<>());
    return ranks[n];
  };
  const Rank<T> low = place + margin < count ? nth(place + margin) : 0;
  return {low, place > margin ? nth(place - margin) : kNone<T>};
}

// Of many values: those in the bracket are looked through, if they are few as expected.
template <class T>
Rank<T> kth_of_many(const T* values, std::size_t size, std::size_t k) {
  const auto [low, high] = bracket(values, size, k);
  const std::size_t few = size / 8, room = few + kWord + 8;
  const std::unique_ptr<T[]> between(new T[room]);  // not filled with zeros
  const std::unique_ptr<std::uint32_t[]> places(new std::uint32_t[room]);
  std::size_t found = 0, above = 0, start = 0;
  for (; start < size && found <= few; start += kWord) {
    const T* word = values + start;
    const std::size_t left = size - start;
    const bool whole = left >= kWord;
    const auto larger = whole ? word_above(word, high) : tail_above(word, left, high);
    const auto least = whole ? word_above(word, low - 1) : tail_above(word, left, low - 1);
    const std::uint64_t mask = least & ~larger;
    if (whole)
      spill_word(word, 0, mask, __builtin_popcountll(mask), &places[found], &between[found]);
    else
      spill_exactly(word, 0, mask, &places[found], &between[found]);
    above += __builtin_popcountll(larger);
    found += __builtin_popcountll(mask);
  }
  if (start < size || above >= k || above + found < k) return kth_by_digits(values, size, k);
  return kth_of_few(between.get(), found, k - above);
}

// The k-th largest rank of some values; 1 <= k <= size.
template <class T>
Rank<T> kth_rank(const T* values, std::size_t size, std::size_t k) {
  if (size <= kFew) return kth_of_few(values, size, k);
  return size < kMany ? kth_by_digits(values, size, k) : kth_of_many(values, size, k);
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
