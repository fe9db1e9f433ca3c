// The merge of single values, as four independent merges interleaved in one loop.
//
// One merge is a chain of load, compare and advance, and the processor waits for it most of the
// time. So a round takes up to 4 * kSegment entries, cuts them into four segments along
// diagonals of the merge grid, and steps all four at once without branches, each into its own
// scratch.
//
// Isa::put writes one merged entry.
#pragma once

#include "kernels/merge/merge.h"

namespace sparcml {
namespace {

constexpr std::size_t kLanes = 4;
constexpr std::size_t kSegment = 8192;  // long enough for the prefetcher, short enough for L2
constexpr std::size_t kStride =
    kSegment + 16;  // not a power of two: lanes must not share a cache set

template <class T>
struct Scratch {
  std::uint32_t indices[kLanes * kStride];
  T values[kLanes * kStride];
  std::size_t written[kLanes];
  std::size_t i_end, j_end;  // where the last lane ends
};

struct Lane {
  std::size_t i, j, i_end, j_end;

  // A step takes at most one entry of each side, so at least this many are needed.
  std::size_t steps() const { return i_end - i > j_end - j ? i_end - i : j_end - j; }
};

// Returns the lane that starts where `before` ends, and ends after `diagonal` entries of the
// merged order, or one later, because equal indices stay together.
template <class T>
Lane cut(const Stream<T>& a, const Stream<T>& b, const Lane& before, std::size_t diagonal) {
  std::size_t low = diagonal > b.nnz ? diagonal - b.nnz : 0;
  std::size_t high = diagonal < a.nnz ? diagonal : a.nnz;
  while (low < high) {
    const std::size_t i = (low + high) / 2;
    if (a.indices[i] <= b.indices[diagonal - i - 1])
      low = i + 1;
    else
      high = i;
  }
  std::size_t j = diagonal - low;
  if (low > 0 && j < b.nnz && a.indices[low - 1] == b.indices[j]) ++j;
  return {before.i_end, before.j_end, low, j};
}

// Steps n lanes until one of them is done; returns the number of steps. Entries beyond the end
// of a lane are greater than all within, so they are never taken and need no check. Streams are
// copies, since the compiler must assume that vector stores change what a reference refers to.
template <class Isa, Op op, std::size_t n, class T>
std::size_t run(Stream<T> a, Stream<T> b, Lane* lanes, std::size_t from, std::uint32_t* oi,
                T* ov) {
  std::size_t i[n], j[n], s = from;
  for (std::size_t k = 0; k < n; ++k) i[k] = lanes[k].i, j[k] = lanes[k].j;
  for (;;) {
    std::size_t steps = lanes[0].steps();
    for (std::size_t k = 1; k < n; ++k)
      if (lanes[k].steps() < steps) steps = lanes[k].steps();
    if (steps == 0) return s;
    for (const std::size_t end = s + steps; s < end; ++s) {
#pragma GCC unroll 4
      for (std::size_t k = 0; k < n; ++k) {
        const std::uint32_t x = a.indices[i[k]], y = b.indices[j[k]];
        Isa::template put<op>(x, a.values + i[k], y, b.values + j[k], oi + k * kStride + s,
                              ov + k * kStride + s);
        i[k] += x <= y;
        j[k] += y <= x;
      }
    }
    for (std::size_t k = 0; k < n; ++k) lanes[k].i = i[k], lanes[k].j = j[k];
  }
}

// Merges the first `size` entries of the merged order, or one more, to the scratch. Returns the
// number of entries written.
template <class Isa, Op op, class T>
std::size_t merge_lanes(Stream<T> a, Stream<T> b, std::size_t size, Scratch<T>& scratch) {
  Lane lanes[kLanes], before{0, 0, 0, 0};
  for (std::size_t k = 0; k < kLanes; ++k)
    before = lanes[k] = cut(a, b, before, size * (k + 1) / kLanes);
  scratch.i_end = before.i_end, scratch.j_end = before.j_end;
  const std::size_t together =
      run<Isa, op, kLanes>(a, b, lanes, 0, scratch.indices, scratch.values);
  std::size_t o = 0;
  for (std::size_t k = 0; k < kLanes; ++k)
    o += scratch.written[k] = run<Isa, op, 1>(
        a, b, lanes + k, together, scratch.indices + k * kStride, scratch.values + k * kStride);
  return o;
}

// Copies what merge_lanes() wrote.
template <class T>
void copy_lanes(const Scratch<T>& scratch, std::uint32_t* oi, T* ov) {
  for (std::size_t k = 0; k < kLanes; ++k) {
    const std::size_t written = scratch.written[k];
    const T* const values = scratch.values + k * kStride;
    std::memcpy(oi, scratch.indices + k * kStride, written * sizeof *oi);
    SPARCML_IVDEP
    for (std::size_t s = 0; s < written; ++s) ov[s] = canonical(values[s]);
    oi += written, ov += written;
  }
}

// Merges as merge_lanes() does, and advances a and b.
template <class Isa, Op op, class T>
std::size_t round(Stream<T>& a, Stream<T>& b, std::size_t size, Scratch<T>& scratch,
                  std::uint32_t* oi, T* ov) {
  const std::size_t o = merge_lanes<Isa, op>(a, b, size, scratch);
  copy_lanes(scratch, oi, ov);
  a = {a.indices + scratch.i_end, a.values + scratch.i_end, a.nnz - scratch.i_end};
  b = {b.indices + scratch.j_end, b.values + scratch.j_end, b.nnz - scratch.j_end};
  return o;
}

}  // namespace
}  // namespace sparcml
