// Exact top-k in one scan: a sample says from where on values are candidates.
//
// The scan is right whatever the sample says. If candidates fill their room, the k largest
// of them stay, and what comes later must be larger than all those that went, as ties go to
// the lowest index: so a constant vector costs one scan, too. If the sample was too high,
// or so low that the room fills again and again, another, larger sample is tried; and if the
// data seem to know our places, a histogram finds a bound that is right.
//
// The anonymous namespace is on purpose: see op.h.
#pragma once

#include <cmath>

#include "kernels/select/keep.h"
#include "kernels/select/squares.h"

namespace sparcml {
namespace {

constexpr std::size_t kSample = 1 << 14, kRarely = 10;  // at least; and one in 2^10
constexpr int kCuts = 3;

// Candidates for the k largest, of values that are scanned from first to last.
template <class T>
struct Candidates {
  Room<T> room;
  std::size_t k;
  Rank<T> bound;  // candidates are above
  int cuts_left;
  std::size_t found = 0;
  bool astray = false;

  template <class Source>
  void scan(Source& source, std::size_t size) {
    std::size_t start = 0;
    for (; start + kWord <= size; start += kWord) {
      std::uint64_t mask = source.word(start, bound);
      const T* values = source.values + start;
      if (mask && full()) {
        cut();
        mask = word_above(values, bound);
      }
      const std::size_t more = __builtin_popcountll(mask);
      spill_word(values, static_cast<std::uint32_t>(start), mask, more, room.indices + found,
                 room.values + found);
      found += more;
    }
    if (start == size) return;
    std::uint64_t mask = source.tail(start, size - start, bound);
    if (full()) {
      cut();
      mask = tail_above(source.values + start, size - start, bound);
    }
    spill_exactly(source.values + start, static_cast<std::uint32_t>(start), mask,
                  room.indices + found, room.values + found);
    found += __builtin_popcountll(mask);
  }

  // Whether another word may not fit.
  bool full() const { return found + kWord + 8 > room.size; }

  // Only the k largest stay; if that has been done too often, nothing is looked for any more.
  void cut() {
    bound = keep_largest<T>({room.indices, room.values, found}, k);
    found = k;
    if (cuts_left-- > 0) return;
    astray = true;
    bound = kNone<T>;
  }

  bool failed() const { return astray || found < k; }
};

// 32 bits that look random: the finalizer of SplitMix64.
inline std::uint64_t scattered(std::uint64_t x) {
  x = (x + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x >> 32;
}

// A bound that the k-th largest is very likely above, though not by much. Places are spread
// evenly, and within their stretch at random: no period of the data is met by them all.
template <class T, class At>
Rank<T> sampled_bound(std::size_t size, std::size_t k, At at, unsigned attempt = 0) {
  const std::size_t wanted = std::max(kSample, size >> kRarely) << 2 * attempt;
  const std::size_t count = std::min(wanted, size / 4);
  const double expected = double(count) * double(k) / double(size);
  const auto place = static_cast<std::size_t>(expected + 4 * std::sqrt(expected) + 4);
  if (place >= count) return kAll<T>;
  const std::size_t stretch = size / count;
  std::vector<Rank<T>> ranks(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t random = scattered(i + (std::uint64_t(attempt) << 32));
    ranks[i] = rank<T>(at(i * stretch + (random * stretch >> 32)));
  }
  std::nth_element(ranks.begin(), ranks.begin() + place, ranks.end(), std::greater<>());
  return ranks[place] - 1;
}

// The highest bound of few enough bits that more than k values, but not `spare` more than
// k unless they are equal, are above it.
template <class T>
Rank<T> counted_bound(const T* values, std::size_t size, std::size_t k, std::size_t spare) {
  constexpr std::size_t bins = 1 << 16;
  std::vector<std::uint32_t> counts(2 * bins);  // two tables: equal values in a row wait less
  Bits<T> prefix = 0;
  for (int shift = 8 * sizeof(T) - 16;; shift -= 16) {
    std::fill(counts.begin(), counts.end(), 0);
    for (std::size_t i = 0; i < size; ++i) {
      const auto r = static_cast<Bits<T>>(rank(values[i]));
      // In two steps: all bits at once is no shift.
      const std::uint32_t in = (r >> shift >> 15 >> 1) == prefix;
      counts[i % 2 * bins + (r >> shift & (bins - 1))] += in;
    }
    std::size_t digit = bins - 1, here = 0;
    for (;; --digit) {
      here = counts[digit] + counts[bins + digit];
      if (here >= k) break;
      k -= here;
    }
    prefix = prefix << 15 << 1 | digit;
    if (shift == 0 || here - k <= spare) return static_cast<Rank<T>>(prefix << shift) - 1;
  }
}

// Scans the values until there are k candidates; `candidates` may have seen them once.
template <class T>
void finish(Candidates<T> candidates, const T* values, std::size_t size) {
  const Room<T> room = candidates.room;
  const std::size_t k = candidates.k;
  const auto at = [&](std::size_t i) { return values[i]; };
  Whole<T> whole{values};
  if (candidates.failed()) {
    candidates = {room, k, sampled_bound<T>(size, k, at, 1), kCuts};
    candidates.scan(whole, size);
  }
  if (candidates.failed()) {
    const std::size_t spare = room.size - k - 2 * kWord;
    const Rank<T> bound = counted_bound(values, size, k, spare);
    candidates = {room, k, bound, std::numeric_limits<int>::max()};
    candidates.scan(whole, size);
  }
  keep_largest<T>({room.indices, room.values, candidates.found}, k);
}

template <class T>
void top_k_any(const T* values, std::size_t size, std::size_t k, Room<T> room) {
  if (k == 0) return;
  const auto at = [&](std::size_t i) { return values[i]; };
  Candidates<T> candidates{room, k, sampled_bound<T>(size, k, at), kCuts};
  Whole<T> whole{values};
  candidates.scan(whole, size);
  finish(candidates, values, size);
}

template <class T>
double owe_top_k_any(Owing<T> owing, std::size_t k, Room<T> room) {
  if (k == 0) return 0;
  const auto at = [&](std::size_t i) {
    return canonical(owing.residual[i] + owing.gradient[i]);
  };
  Candidates<T> candidates{room, k, sampled_bound<T>(owing.size, k, at), kCuts};
  Owe<T> owe(owing);
  candidates.scan(owe, owing.size);
  finish<T>(candidates, owing.out, owing.size);
  for (std::size_t i = 0; i < k; ++i) owing.out[room.indices[i]] = 0;
  return owe.squares();
}

}  // namespace
}  // namespace sparcml
