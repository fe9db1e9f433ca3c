// The k largest of every bucket: a bound, the few values above it, the k largest of those.
//
// Where the maxima of groups give no good bound, as k is too large for them, bisection does:
// to count the values of a bucket above a bound takes so little that thirty bounds can be
// tried.
//
// The anonymous namespace is on purpose: see op.h.
#pragma once

#include "kernels/select/groups.h"
#include "kernels/select/keep.h"
#include "kernels/select/squares.h"

namespace sparcml {
namespace {

constexpr std::size_t kBisect = 1 << 13;  // values that stay in the nearest cache

// The bound that exactly k ranks are above; with ties, the k-th largest rank less one.
template <class T>
Rank<T> bisected_bound(const Rank<T>* ranks, std::size_t size, std::size_t k) {
  Rank<T> low = -1, high = 0;
  for (std::size_t i = 0; i < size; ++i) high = std::max(high, ranks[i]);
  while (high - low > 1) {
    const Rank<T> middle = low + (high - low) / 2;
    Rank<T> above = 0;
    for (std::size_t i = 0; i < size; ++i) above += ranks[i] > middle;
    if (above == static_cast<Rank<T>>(k)) return middle;
    (above > static_cast<Rank<T>>(k) ? low : high) = middle;
  }
  return low;
}

template <class T>
class Buckets {
 public:
  Buckets(std::size_t k, std::size_t bucket, Room<T> out)
      : k_(k),
        out_(out),
        indices_(bucket + 8),
        values_(bucket + 8),
        ranks_(std::min(bucket, kBisect)) {}

  // The bucket that begins at `start`, and has `size` values.
  void select(const T* values, std::size_t start, std::size_t size) {
    const std::size_t k = std::min(k_, size);
    const Rank<T> bound = bound_of(values + start, size, k);
    const std::size_t found = collect(values + start, start, size, bound);
    if (found > k) keep({indices_.data(), values_.data(), found}, k, bound + 1);
    std::memcpy(out_.indices, indices_.data(), k * sizeof(std::uint32_t));
    std::memcpy(out_.values, values_.data(), k * sizeof(T));
    out_.indices += k;
    out_.values += k;
  }

 private:
  Rank<T> bound_of(const T* values, std::size_t size, std::size_t k) {
    if (k == size) return kAll<T>;
    if (size % kWord == 0 && 4 * k <= kGroups<T>) return group_bound(values, size, k);
    if (size > kBisect) return kAll<T>;
    for (std::size_t i = 0; i < size; ++i) ranks_[i] = rank(values[i]);
    return bisected_bound<T>(ranks_.data(), size, k);
  }

  std::size_t collect(const T* values, std::size_t start, std::size_t size, Rank<T> bound) {
    std::size_t found = 0, at = 0;
    for (; at + kWord <= size; at += kWord) {
      const std::uint64_t mask = word_above(values + at, bound);
      if (mask == 0) continue;
      const std::size_t more = __builtin_popcountll(mask);
      spill_word(values + at, static_cast<std::uint32_t>(start + at), mask, more,
                 indices_.data() + found, values_.data() + found);
      found += more;
    }
    const std::uint64_t mask = tail_above(values + at, size - at, bound);
    spill_exactly(values + at, static_cast<std::uint32_t>(start + at), mask,
                  indices_.data() + found, values_.data() + found);
    return found + __builtin_popcountll(mask);
  }

  // The least rank is often that of the k-th: then equal ones are all that is too many.
  static void keep(Room<T> entries, std::size_t k, Rank<T> least) {
    std::size_t above = 0;
    for (std::size_t i = 0; i < entries.size; ++i) above += rank(entries.values[i]) > least;
    if (above < k)
      keep_above(entries, k, least);
    else
      keep_largest(entries, k);
  }

  std::size_t k_;
  Room<T> out_;
  std::vector<std::uint32_t> indices_;
  std::vector<T> values_;
  std::vector<Rank<T>> ranks_;
};

template <class T>
void bucket_top_k_any(const T* values, std::size_t size, std::size_t k, std::size_t bucket,
                      Room<T> room) {
  Buckets<T> buckets(k, std::min(bucket, size), room);
  for (std::size_t start = 0; start < size; start += bucket)
    buckets.select(values, start, std::min(bucket, size - start));
}

template <class T>
double owe_bucket_top_k_any(Owing<T> owing, std::size_t k, std::size_t bucket, Room<T> room) {
  Buckets<T> buckets(k, std::min(bucket, owing.size), room);
  Owe<T> owe(owing);
  const std::uint32_t* cleared = room.indices;
  for (std::size_t start = 0; start < owing.size; start += bucket) {
    const std::size_t size = std::min(bucket, owing.size - start);
    owe.until(start + size);
    buckets.select(owing.out, start, size);
    const std::uint32_t* end = cleared + std::min(k, size);
    for (; cleared < end; ++cleared) owing.out[*cleared] = 0;
  }
  return owe.squares();
}

}  // namespace
}  // namespace sparcml
