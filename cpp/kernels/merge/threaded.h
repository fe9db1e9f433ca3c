// The merge of two long streams on several threads, piece by piece along diagonals of the merge
// grid. A piece is merged to scratch, or counted, before its place in the result is known.
#pragma once

#include <memory>

#include "kernels/merge/blocks.h"
#include "kernels/merge/lanes.h"
#include "kernels/threads/pieces.h"

namespace sparcml {
namespace {

constexpr std::size_t kWorth = 1 << 17;  // values for which further threads are woken
constexpr std::size_t kRound = kLanes * kSegment;

inline bool is_worth_threads(std::size_t values) { return values >= kWorth && threads() > 1; }

// Kept: its pages would be returned to the system and mapped again with each call.
template <class T>
Scratch<T>& own_scratch() {
  static thread_local const std::unique_ptr<Scratch<T>> scratch(new Scratch<T>);
  return *scratch;
}

// Merges single values in rounds. Each stream must be followed by an index that is greater than
// all in both.
template <class Isa, Op op, class T>
std::size_t merge_rounds(const Stream<T>& a, const Stream<T>& b, std::uint32_t* oi, T* ov) {
  const std::size_t nnz = a.nnz + b.nnz;
  Pieces pieces((nnz + kRound - 1) / kRound);
  pieces.run([&] {
    Scratch<T>& scratch = own_scratch<T>();
    for (std::size_t piece; pieces.take(piece);) {
      const std::size_t end = nnz - piece * kRound < kRound ? nnz : (piece + 1) * kRound;
      const Lane before = cut(a, b, Lane{0, 0, 0, 0}, piece * kRound);
      const std::size_t size = end - before.i_end - before.j_end;
      Stream<T> x = from(a, before.i_end, 1), y = from(b, before.j_end, 1);
      x.nnz = x.nnz < size + 1 ? x.nnz : size + 1;  // for short searches
      y.nnz = y.nnz < size + 1 ? y.nnz : size + 1;
      const std::size_t count = merge_lanes<Isa, op>(x, y, size, scratch);
      const std::size_t o = pieces.begin(piece);
      pieces.finish(piece, count);
      copy_lanes(scratch, oi + o, ov + o);
    }
  });
  return pieces.size();
}

// Merges blocks. Their values are merged in place, since counting indices costs little more.
template <Op op, class T>
std::size_t merge_block_pieces(const Stream<T>& a, const Stream<T>& b, std::size_t block,
                               std::uint32_t* oi, T* ov) {
  constexpr std::size_t shortest = 1024;
  const std::size_t nnz = a.nnz + b.nnz;
  const std::size_t length = kRound / block < shortest ? shortest : kRound / block;
  Pieces pieces((nnz + length - 1) / length);
  pieces.run([&] {
    for (std::size_t piece; pieces.take(piece);) {
      const std::size_t end = nnz - piece * length < length ? nnz : (piece + 1) * length;
      const Lane before = cut(a, b, Lane{0, 0, 0, 0}, piece * length);
      const Lane lane = cut(a, b, before, end);
      Stream<T> x = from(a, lane.i, block), y = from(b, lane.j, block);
      x.nnz = lane.i_end - lane.i;
      y.nnz = lane.j_end - lane.j;
      const std::size_t count = count_union(x, y);
      const std::size_t o = pieces.begin(piece);
      pieces.finish(piece, count);
      merge_blocks<op>(x, y, block, oi + o, ov + o * block);
    }
  });
  return pieces.size();
}

}  // namespace
}  // namespace sparcml
