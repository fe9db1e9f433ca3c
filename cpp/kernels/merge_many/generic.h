// Streams are added window by window. A window is a dense accumulator that stays in the cache,
// with one byte per block that is set when the block is touched. (With bits, each entry would
// wait for its neighbour.) One more byte per line of 64 blocks lets flush() skip untouched
// lines, so that a sparse window costs only its entries.
//
// Isa::touched converts the 64 bytes of a line to bits. Isa::lowest returns the position of the
// lowest one bit, or an arbitrary value if there is none.
#pragma once

#include "kernels/merge_many/merge_many.h"

namespace sparcml {
namespace {

constexpr std::size_t kLine = 64;  // blocks

template <class T>
struct Window {
  T* total;
  std::uint8_t* blocks;
  std::uint8_t* lines;
  std::size_t width;  // in blocks, a multiple of kLine
  std::uint32_t start;
};

// A block size known to the compiler: single values are the common case.
using One = std::integral_constant<std::size_t, 1>;

// Adds the entries of a stream in the window and advances the stream past it. The pointers are
// local because the compiler must assume that a written byte may be part of a struct.
template <Op op, class T, class Block>
inline void add(const Window<T>& w, Stream<T>& s, Block block) {
  T* const total = w.total;
  std::uint8_t *const blocks = w.blocks, *const lines = w.lines;
  const std::uint32_t *const indices = s.indices, start = w.start;
  const T* const values = s.values;
  const std::size_t nnz = s.nnz, width = w.width;
  const auto one = [=](std::size_t n) {
    const std::size_t at = indices[n] - start;
    blocks[at] = 1;
    lines[at / kLine] = 1;
    for (std::size_t k = 0; k < block; ++k)
      total[at * block + k] = combine_raw<op>(total[at * block + k], values[n * block + k]);
  };
  std::size_t n = 0;
  for (; n + 4 <= nnz && indices[n + 3] - start < width; n += 4)
    one(n), one(n + 1), one(n + 2), one(n + 3);
  for (; n < nnz && indices[n] - start < width; ++n) one(n);
  s = {indices + n, values + n * block, nnz - n};
}

// Writes the indices of a line and returns their number. If `ahead`, it writes eight at a time
// and up to seven too many.
template <class Isa>
inline std::size_t list(std::uint32_t first, std::uint64_t touched, bool ahead,
                        std::uint32_t* oi) {
  const std::size_t count = __builtin_popcountll(touched);
  for (std::size_t o = 0; ahead && o < count; o += 8) {
    for (std::size_t k = 0; k < 8; ++k) {
      std::uint32_t index = first + Isa::lowest(touched);
      asm("" : "+r"(index));  // prevents a vector of eight, which is slower
      oi[o + k] = index;
      touched &= touched - 1;
    }
  }
  for (std::size_t o = 0; !ahead && o < count; ++o) {
    oi[o] = first + Isa::lowest(touched);
    touched &= touched - 1;
  }
  return count;
}

// Writes the indices of all touched blocks and clears their marks.
template <class Isa, class T>
std::size_t list_all(const Window<T>& w, bool ahead, std::uint32_t* oi) {
  std::uint8_t *const blocks = w.blocks, *const all_lines = w.lines;
  const std::size_t groups = w.width / kLine / 8;
  std::uint32_t index = w.start;
  std::size_t o = 0;
  for (std::size_t group = 0; group < groups; ++group, index += 8 * kLine) {
    std::uint64_t lines;
    std::memcpy(&lines, all_lines + group * 8, sizeof lines);
    std::memset(all_lines + group * 8, 0, sizeof lines);
    for (; lines; lines &= lines - 1) {
      const std::size_t line = __builtin_ctzll(lines) / 8;
      std::uint8_t* bytes = blocks + (group * 8 + line) * kLine;
      const std::uint64_t touched = Isa::touched(bytes);
      std::memset(bytes, 0, kLine);
      o += list<Isa>(index + line * kLine, touched, ahead, oi + o);
    }
  }
  return o;
}

// Writes the entries of the window, clears it and returns their number.
template <class Isa, Op op, class T, class Block>
std::size_t flush(const Window<T>& w, Block block, bool ahead, std::uint32_t* oi, T* ov) {
  const std::size_t count = list_all<Isa>(w, ahead, oi);
  for (std::size_t o = 0; o < count; ++o) {
    T* total = w.total + std::size_t(oi[o] - w.start) * block;
    for (std::size_t k = 0; k < block; ++k) {
      ov[o * block + k] = total[k];
      total[k] = identity<op, T>();
    }
  }
  canonicalise(ov, count * block);
  return count;
}

}  // namespace
}  // namespace sparcml
