// Keeps the k entries of largest magnitude, in position and in order.
//
// op.h explains the anonymous namespace.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/selection/magnitude.h"

namespace sparcml {
namespace {

constexpr int kDigit = 12;  // bits that one pass of the radix search decides
constexpr std::size_t kFew = 256, kMany = 1 << 14;

// Returns the k-th largest key by a radix search from the highest digit down.
template <class T>
Key<T> kth_by_digits(const T* values, std::size_t size, std::size_t k) {
  Key<T> low = kNone<T>, high = 0;
  for (std::size_t i = 0; i < size; ++i) {
    low = std::min(low, key(values[i]));
    high = std::max(high, key(values[i]));
  }
  for (;;) {
    int shift = 0;
    while (Bits<T>(high - low) >> shift >> kDigit) ++shift;
    std::uint32_t counts[std::size_t{1} << kDigit] = {};
    for (std::size_t i = 0; i < size; ++i) {
      const Key<T> r = key(values[i]);
      if (r >= low && r <= high) ++counts[(r - low) >> shift];
    }
    std::size_t digit = static_cast<std::size_t>((high - low) >> shift);
    for (; counts[digit] < k; --digit) k -= counts[digit];
    low += static_cast<Key<T>>(digit) << shift;
    if (shift == 0) return low;
    high = std::min<Key<T>>(high, low + ((Key<T>(1) << shift) - 1));
  }
}

// Returns the n-th largest key, from 0. The algorithm is inlined, because the library's own
// copy is compiled for every processor, and slower.
template <class T>
[[gnu::flatten]] Key<T> nth_key(std::vector<Key<T>>& keys, std::size_t n) {
  std::nth_element(keys.begin(), keys.begin() + n, keys.end(), std::greater<>());
  return keys[n];
}

// Returns the k-th largest key of a few values.
template <class T>
Key<T> kth_of_few(const T* values, std::size_t size, std::size_t k) {
  std::vector<Key<T>> keys(size);
  for (std::size_t i = 0; i < size; ++i) keys[i] = key(values[i]);
  return nth_key<T>(keys, k - 1);
}

// Returns two keys of a sample that the k-th largest key of many values very likely lies
// between (Floyd and Rivest).
template <class T>
std::pair<Key<T>, Key<T>> bracket(const T* values, std::size_t size, std::size_t k) {
  constexpr std::size_t count = 1 << 13, margin = 5 * 45;  // at most five standard deviations
  std::vector<Key<T>> keys(count);
  for (std::size_t i = 0; i < count; ++i) keys[i] = key(values[i * (size / count)]);
  const auto position = static_cast<std::size_t>(double(k) / double(size) * count);
  const Key<T> low = position + margin < count ? nth_key<T>(keys, position + margin) : 0;
  return {low, position > margin ? nth_key<T>(keys, position - margin) : kNone<T>};
}

// Returns the k-th largest key of many values. Only the values in the bracket are searched, if
// they are as few as expected.
template <class T>
Key<T> kth_of_many(const T* values, std::size_t size, std::size_t k) {
  const auto [low, high] = bracket(values, size, k);
  const std::size_t few = size / 8, capacity = few + kWord + 8;
  const std::unique_ptr<T[]> between(new T[capacity]);  // uninitialized
  const std::unique_ptr<std::uint32_t[]> positions(new std::uint32_t[capacity]);
  std::size_t count = 0, above = 0, start = 0;
  for (; start < size && count <= few; start += kWord) {
    const T* word = values + start;
    const std::size_t left = size - start;
    const bool full = left >= kWord;
    const auto larger = full ? word_above(word, high) : tail_above(word, left, high);
    const auto least = full ? word_above(word, low - 1) : tail_above(word, left, low - 1);
    const std::uint64_t mask = least & ~larger;
    if (full)
      spill_word(word, 0, mask, __builtin_popcountll(mask), &positions[count], &between[count]);
    else
      spill_exactly(word, 0, mask, &positions[count], &between[count]);
    above += __builtin_popcountll(larger);
    count += __builtin_popcountll(mask);
  }
  if (start < size || above >= k || above + count < k) return kth_by_digits(values, size, k);
  return kth_of_few(between.get(), count, k - above);
}

// Returns the k-th largest key; 1 <= k <= size.
template <class T>
Key<T> kth_key(const T* values, std::size_t size, std::size_t k) {
  if (size <= kFew) return kth_of_few(values, size, k);
  return size < kMany ? kth_by_digits(values, size, k) : kth_of_many(values, size, k);
}

// Returns the lowest `count` ones of a word.
inline std::uint64_t lowest(std::uint64_t word, std::size_t count) {
  if (static_cast<std::size_t>(__builtin_popcountll(word)) <= count) return word;
  std::uint64_t mask = 0;
  for (; count; --count, word &= word - 1) mask |= word & -word;
  return mask;
}

// Moves those of the entries at `from` that have a one in the mask to `to`, which is not later.
template <class T>
inline void move_tail(EntryBuffer<T> entries, std::size_t from, std::uint64_t mask,
                      std::size_t to) {
  for (; mask; mask &= mask - 1, ++to) {
    const std::size_t at = from + __builtin_ctzll(mask);
    entries.indices[to] = entries.indices[at];
    entries.values[to] = entries.values[at];
  }
}

template <class T>
inline void move_word(EntryBuffer<T> entries, std::size_t from, std::uint64_t mask,
                      std::size_t to) {
  move_tail(entries, from, mask, to);
}

#ifdef SPARCML_AVX2
// Moves eight entries at a time. What it writes beyond the last one has been read already.
template <>
inline void move_word(EntryBuffer<float> entries, std::size_t from, std::uint64_t mask,
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

// Keeps the entries above a key and the first entries equal to it, k in total.
template <class T>
void keep_above(EntryBuffer<T> entries, std::size_t k, Key<T> kth) {
  const T* values = entries.values;
  std::size_t equal = k, o = 0, i = 0;
  for (std::size_t j = 0; j < entries.size; ++j) equal -= key(values[j]) > kth;
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

// Keeps the k largest entries and returns the smallest key among them.
template <class T>
Key<T> keep_largest(EntryBuffer<T> entries, std::size_t k) {
  const Key<T> kth = kth_key(entries.values, entries.size, k);
  if (entries.size > k) keep_above(entries, k, kth);
  return kth;
}

}  // namespace
}  // namespace sparcml
