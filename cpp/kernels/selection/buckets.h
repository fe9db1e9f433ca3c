// The k largest values of every bucket: find a bound, collect the few values above it, keep the
// k largest of those.
//
// The maxima of groups give a good bound if k is small. Otherwise bisection does: counting the
// values of a bucket above a bound is cheap enough to try thirty bounds.
//
// op.h explains the anonymous namespace.
#pragma once

#include <numeric>

#include "kernels/selection/groups.h"
#include "kernels/selection/keep.h"
#include "kernels/selection/squares.h"

namespace sparcml {
namespace {

constexpr std::size_t kBisect = 1 << 13;  // values that stay in the L1 cache

template <class T>
constexpr Key<T> kFirstStep = Key<T>{1} << (sizeof(T) == 4 ? 19 : 48);
template <class T>
constexpr Key<T> kLastStep = Key<T>{1} << (8 * sizeof(T) - 4);

// Values that may be above a bound in addition to k: it then suits the next bucket, too.
inline std::size_t spare_of(std::size_t k) { return std::min<std::size_t>(k, 64); }

// Returns a bound with at least k keys above it, and few more unless keys are equal.
//
// Successive buckets often have similar values, so the search begins at the bound of the last
// one and widens by steps of about 6 % of the magnitude before it bisects.
template <class T>
Key<T> bisected_bound(const Key<T>* keys, std::size_t size, std::size_t k, Key<T> guess) {
  const auto fewest = static_cast<Key<T>>(k + spare_of(k) / 4),
             most = static_cast<Key<T>>(k + spare_of(k) / 2);
  Key<T> low = -1, high = 0, step = kFirstStep<T>;
  for (std::size_t i = 0; i < size; ++i) high = std::max(high, keys[i]);
  Key<T> middle = guess > low && guess < high ? guess : low + (high - low) / 2;
  while (high - low > 1) {
    Key<T> above = 0;
    for (std::size_t i = 0; i < size; ++i) above += keys[i] > middle;
    if (above >= fewest && above <= most) return middle;
    (above > most ? low : high) = middle;
    middle = low + (high - low) / 2;
    if (above > most && high - low > 2 * step) middle = low + step;
    if (above < fewest && high - low > 2 * step) middle = high - step;
    step = std::min(2 * step, kLastStep<T>);
  }
  return low;
}

template <class T>
class Buckets {
 public:
  Buckets(std::size_t k, std::size_t bucket, EntryBuffer<T> out)
      : k_(k),
        out_(out),
        indices_(bucket + 8),
        values_(bucket + 8),
        keys_(std::min(bucket, kBisect)) {}

  // Selects from the bucket that begins at `start` and has `size` values.
  void select(const T* values, std::size_t start, std::size_t size) {
    const std::size_t k = std::min(k_, size);
    Key<T> bound = guess_;
    std::size_t count = 0;
    if (bound >= 0) count = collect(values + start, start, size, bound);
    if (count < k || count > k + spare_of(k)) {
      bound = bound_of(values + start, size, k);
      count = collect(values + start, start, size, bound);
    }
    if (count > k) keep({indices_.data(), values_.data(), count}, k, bound + 1);
    std::memcpy(out_.indices, indices_.data(), k * sizeof(std::uint32_t));
    std::memcpy(out_.values, values_.data(), k * sizeof(T));
    out_.indices += k;
    out_.values += k;
  }

 private:
  Key<T> bound_of(const T* values, std::size_t size, std::size_t k) {
    if (k == size) return kAll<T>;
    if (size % kWord == 0 && 4 * k <= kGroups<T>) return group_bound(values, size, k);
    if (size > kBisect) return kAll<T>;
    for (std::size_t i = 0; i < size; ++i) keys_[i] = key(values[i]);
    guess_ = bisected_bound<T>(keys_.data(), size, k, guess_);
    return guess_;
  }

  std::size_t collect(const T* values, std::size_t start, std::size_t size, Key<T> bound) {
    std::size_t count = 0, at = 0;
    for (; at + kWord <= size; at += kWord) {
      const std::uint64_t mask = word_above(values + at, bound);
      if (mask == 0) continue;
      const std::size_t added = __builtin_popcountll(mask);
      spill_word(values + at, static_cast<std::uint32_t>(start + at), mask, added,
                 indices_.data() + count, values_.data() + count);
      count += added;
    }
    const std::uint64_t mask = tail_above(values + at, size - at, bound);
    spill_exactly(values + at, static_cast<std::uint32_t>(start + at), mask,
                  indices_.data() + count, values_.data() + count);
    return count + __builtin_popcountll(mask);
  }

  // The lowest key is often the k-th largest. Then only entries equal to it are in excess.
  static void keep(EntryBuffer<T> entries, std::size_t k, Key<T> lowest_key) {
    std::size_t above = 0;
    for (std::size_t i = 0; i < entries.size; ++i) above += key(entries.values[i]) > lowest_key;
    if (above < k)
      keep_above(entries, k, lowest_key);
    else
      keep_largest(entries, k);
  }

  std::size_t k_;
  Key<T> guess_ = -1;
  EntryBuffer<T> out_;
  std::vector<std::uint32_t> indices_;
  std::vector<T> values_;
  std::vector<Key<T>> keys_;
};

// Calls f(start, end, buffer) for parts of the vector that begin with a bucket and with a block
// of squares; `buffer` is where the entries of the part begin.
template <class T, class F>
void for_bucket_parts(std::size_t size, std::size_t k, std::size_t bucket,
                      EntryBuffer<T> buffer, F f) {
  const Parts parts(size);
  const auto first = [&](std::size_t part) {
    if (part == parts.count) return size;
    const std::size_t both = std::lcm(bucket, kSquares);
    return parts.begin(part) / both * both;
  };
  for_parts(parts.count, [&](std::size_t part) {
    const std::size_t start = first(part), skipped = start / bucket * k;
    f(start, first(part + 1),
      EntryBuffer<T>{buffer.indices + skipped, buffer.values + skipped, buffer.size - skipped});
  });
}

}  // namespace
}  // namespace sparcml
