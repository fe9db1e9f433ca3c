// Exact top-k in one scan: a sample gives a bound, and values above it are candidates.
//
// The result does not depend on the sample. If the candidates fill their buffer, only the k
// largest are kept, and later candidates must be larger than all dropped ones, because ties go
// to the lowest index: so a constant vector costs one scan, too. If the bound was too high, or
// so low that the buffer fills repeatedly, a larger sample is tried. If that fails as well, for
// data that are adverse to the sampled positions, a histogram gives an exact bound.
//
// op.h explains the anonymous namespace.
#pragma once

#include <cmath>

#include "kernels/selection/keep.h"
#include "kernels/selection/parts.h"
#include "kernels/selection/squares.h"

namespace sparcml {
namespace {

constexpr std::size_t kSample = 1 << 14, kSampleShift = 10;  // at least; and one in 2^10 values
constexpr int kCuts = 3;

// Candidates for the k largest values of a scan from first to last.
template <class T>
struct Candidates {
  EntryBuffer<T> buffer;
  std::size_t k;
  Key<T> bound;  // candidates are above it
  int cuts_left;
  std::size_t count = 0;
  bool gave_up = false;

  template <class Source>
  void scan(Source& source, std::size_t size, std::size_t start = 0) {
    for (; start + kWord <= size; start += kWord) {
      std::uint64_t mask = source.word(start, bound);
      const T* values = source.values + start;
      if (mask && full()) {
        cut();
        mask = word_above(values, bound);
      }
      const std::size_t added = __builtin_popcountll(mask);
      spill_word(values, static_cast<std::uint32_t>(start), mask, added, buffer.indices + count,
                 buffer.values + count);
      count += added;
    }
    if (start == size) return;
    std::uint64_t mask = source.tail(start, size - start, bound);
    if (full()) {
      cut();
      mask = tail_above(source.values + start, size - start, bound);
    }
    spill_exactly(source.values + start, static_cast<std::uint32_t>(start), mask,
                  buffer.indices + count, buffer.values + count);
    count += __builtin_popcountll(mask);
  }

  // Whether another word of candidates may not fit.
  bool full() const { return count + kWord + 8 > buffer.size; }

  // Keeps only the k largest. After too many cuts the scan selects nothing added and has
  // failed.
  void cut() {
    bound = keep_largest<T>({buffer.indices, buffer.values, count}, k);
    count = k;
    if (cuts_left-- > 0) return;
    gave_up = true;
    bound = kNone<T>;
  }

  bool failed() const { return gave_up || count < k; }
};

// Scans the vector in parts, each on a thread if there are several. `source_of(begin)` returns
// the vector that a part reads. The candidates of all parts follow each other, as those of one
// scan do.
template <class T, class SourceOf>
void scan_in_parts(Candidates<T>& all, std::size_t size, SourceOf source_of) {
  const Parts parts(size);
  std::vector<Candidates<T>> found(parts.count, all);
  std::vector<OwnEntries<T>> own(parts.count - 1);
  for_parts(parts.count, [&](std::size_t part) {
    Candidates<T>& candidates = found[part];
    if (part) candidates.buffer = own[part - 1].allocate(all.buffer.size);
    auto source = source_of(parts.begin(part));
    candidates.scan(source, parts.begin(part + 1), parts.begin(part));
  });
  all = found[0];
  for (std::size_t part = 1; part < parts.count; ++part) {
    const Candidates<T>& next = found[part];
    all.gave_up |= next.gave_up || all.count + next.count > all.buffer.size;
    if (all.gave_up) return;
    std::copy_n(next.buffer.indices, next.count, all.buffer.indices + all.count);
    std::copy_n(next.buffer.values, next.count, all.buffer.values + all.count);
    all.count += next.count;
  }
}

// Returns 32 pseudorandom bits: the finalizer of SplitMix64.
inline std::uint64_t random_bits(std::uint64_t x) {
  x = (x + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x >> 32;
}

// Returns a bound that the k-th largest key is very likely above, though not by much. Sampled
// positions are random within evenly spaced strides, so that they match no period of the data.
template <class T, class At>
Key<T> sampled_bound(std::size_t size, std::size_t k, At at, unsigned attempt = 0) {
  const std::size_t wanted = std::max(kSample, size >> kSampleShift) << 2 * attempt;
  const std::size_t count = std::min(wanted, size / 4);
  const double expected = double(count) * double(k) / double(size);
  const auto position = static_cast<std::size_t>(expected + 4 * std::sqrt(expected) + 4);
  if (position >= count) return kAll<T>;
  const std::size_t stride = size / count;
  std::vector<Key<T>> keys(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t random = random_bits(i + (std::uint64_t(attempt) << 32));
    keys[i] = key<T>(at(i * stride + (random * stride >> 32)));
  }
  return nth_key<T>(keys, position) - 1;
}

// Returns the highest bound with at least k values above it, of the shortest prefix of bits for
// which at most `spare` added are above it, unless they are equal.
template <class T>
Key<T> counted_bound(const T* values, std::size_t size, std::size_t k, std::size_t spare) {
  constexpr std::size_t bins = 1 << 16;
  std::vector<std::uint32_t> counts(
      2 * bins);  // two tables, so that equal neighbours do not wait for each other
  Bits<T> prefix = 0;
  for (int shift = 8 * sizeof(T) - 16;; shift -= 16) {
    std::fill(counts.begin(), counts.end(), 0);
    for (std::size_t i = 0; i < size; ++i) {
      const auto r = static_cast<Bits<T>>(key(values[i]));
      // Shift in two steps: a shift by all bits is undefined.
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
    if (shift == 0 || here - k <= spare) return static_cast<Key<T>>(prefix << shift) - 1;
  }
}

// Scans the values until there are k candidates, unless `candidates` has count them already.
template <class T>
void finish(Candidates<T> candidates, const T* values, std::size_t size) {
  const EntryBuffer<T> buffer = candidates.buffer;
  const std::size_t k = candidates.k;
  const auto at = [&](std::size_t i) { return values[i]; };
  Vector<T> vector{values};
  if (candidates.failed()) {
    candidates = {buffer, k, sampled_bound<T>(size, k, at, 1), kCuts};
    candidates.scan(vector, size);
  }
  if (candidates.failed()) {
    const std::size_t spare = buffer.size - k - 2 * kWord;
    const Key<T> bound = counted_bound(values, size, k, spare);
    candidates = {buffer, k, bound, std::numeric_limits<int>::max()};
    candidates.scan(vector, size);
  }
  keep_largest<T>({buffer.indices, buffer.values, candidates.count}, k);
}

}  // namespace
}  // namespace sparcml
