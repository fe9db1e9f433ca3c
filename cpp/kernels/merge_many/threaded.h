// Folds long streams on several threads, piece by piece: ranges of indices with about as many
// entries each. A piece is folded to scratch before its place in the result is known.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/merge_many/fold.h"
#include "kernels/threads/pieces.h"

namespace sparcml {
namespace {

constexpr std::size_t kWide = 64;          // values per block that need no window
constexpr std::size_t kWorth = 1 << 17;    // values for which further threads are woken
constexpr std::size_t kPiece = 1 << 18;    // bytes of a piece, about
constexpr std::size_t kScratch = 3 << 17;  // bytes: pieces are longer than a sample suggests
constexpr std::size_t kSamples = 16;       // per piece

// Kept: its pages would be returned to the system and mapped again with each call.
struct Scratch {
  alignas(64) std::uint8_t bytes[kScratch];
};

inline std::uint8_t* own_scratch() {
  static thread_local const std::unique_ptr<Scratch> scratch(new Scratch);
  return scratch->bytes;
}

// Returns the first index of each piece but the first, from a sample of the indices.
template <class T>
std::vector<std::uint64_t> divide(const Stream<T>* streams, std::size_t count,
                                  std::size_t length) {
  const std::size_t stride = length / kSamples + 1;
  std::vector<std::uint32_t> sample;
  std::size_t n = stride / 2;  // continues in the next stream, since all may be short
  for (std::size_t k = 0; k < count; n -= streams[k++].nnz)
    for (; n < streams[k].nnz; n += stride) sample.push_back(streams[k].indices[n]);
  std::sort(sample.begin(), sample.end());
  std::vector<std::uint64_t> bounds;
  for (std::size_t at = kSamples; at < sample.size(); at += kSamples)
    bounds.push_back(sample[at]);
  return bounds;
}

// Returns the entries below `bound`, and removes them from the stream. The distance is doubled
// first, because most bounds are near.
template <class T>
Stream<T> take_below(Stream<T>& s, std::uint64_t bound, std::size_t block) {
  std::size_t low = 0, high = 1;
  for (; high < s.nnz && s.indices[high] < bound; high *= 2) low = high + 1;
  high = high < s.nnz ? high : s.nnz;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (s.indices[middle] < bound)
      low = middle + 1;
    else
      high = middle;
  }
  const Stream<T> taken{s.indices, s.values, low};
  s = {s.indices + low, s.values + low * block, s.nnz - low};
  return taken;
}

// Folds with make(), one for each thread. A piece that is too long for the scratch waits for
// its place and is folded there.
template <class T, class Make>
std::size_t fold_pieces(Stream<T>* streams, std::size_t count, std::size_t block, Make make,
                        std::uint32_t* oi, T* ov) {
  const std::size_t entry = sizeof *oi + block * sizeof(T), room = kScratch / entry;
  const std::vector<std::uint64_t> bounds = divide(streams, count, kPiece / entry);
  Pieces pieces(bounds.size() + 1);
  pieces.run([&] {
    T* const sv = reinterpret_cast<T*>(own_scratch());
    std::uint32_t* const si = reinterpret_cast<std::uint32_t*>(sv + room * block);
    std::vector<Stream<T>> rest(streams, streams + count), some(count);
    auto fold = make();
    for (std::size_t piece; pieces.take(piece);) {
      const std::uint64_t first = piece ? bounds[piece - 1] : 0;
      const std::uint64_t limit = piece < bounds.size() ? bounds[piece] : UINT64_MAX;
      for (std::size_t k = 0; k < count; ++k) {
        take_below(rest[k], first, block);
        some[k] = take_below(rest[k], limit, block);
      }
      if (entries(some.data(), count) > room) {
        const std::size_t o = pieces.begin(piece);
        pieces.finish(piece, fold(some.data(), count, oi + o, ov + o * block));
        continue;
      }
      const std::size_t size = fold(some.data(), count, si, sv);
      const std::size_t o = pieces.begin(piece);
      pieces.finish(piece, size);
      std::memcpy(oi + o, si, size * sizeof *oi);
      std::memcpy(ov + o * block, sv, size * block * sizeof(T));
    }
  });
  for (Stream<T>* s = streams; s < streams + count; ++s) take_below(*s, UINT64_MAX, block);
  return pieces.size();
}

template <class T, class Make>
std::size_t fold_with(Stream<T>* streams, std::size_t count, std::size_t block, Make make,
                      std::uint32_t* oi, T* ov) {
  if (threads() > 1 && entries(streams, count) * block >= kWorth)
    return fold_pieces(streams, count, block, make, oi, ov);
  return make()(streams, count, oi, ov);
}

template <class Isa, class T>
std::size_t fold_any(Op op, Stream<T>* streams, std::size_t count, std::size_t block,
                     std::uint32_t* oi, T* ov) {
  return with_op(op, [&](auto o) {
    constexpr Op known = decltype(o)::value;
    if (block >= kWide) {
      const auto make = [block] {
        return [block](Stream<T>* s, std::size_t n, std::uint32_t* i, T* v) {
          return fold_wide<known>(s, n, block, i, v);
        };
      };
      return fold_with(streams, count, block, make, oi, ov);
    }
    const std::size_t width = window_width(streams, count, block);
    if (block == 1) {
      const auto make = [width] { return Fold<Isa, known, T, One>(width, One()); };
      return fold_with(streams, count, block, make, oi, ov);
    }
    const auto make = [=] { return Fold<Isa, known, T, std::size_t>(width, block); };
    return fold_with(streams, count, block, make, oi, ov);
  });
}

}  // namespace
}  // namespace sparcml
