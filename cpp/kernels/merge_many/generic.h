// Streams are added window by window: a dense accumulator that stays in the cache, and a byte
// for each of its blocks, set when the block is touched (a byte, not a bit: setting bits would
// make each entry wait for its neighbour). A second byte for each line of 64 blocks lets the
// emitter skip what nobody touched, so sparse windows cost what they hold.
//
// Isa::touched turns the 64 bytes of a line into bits; Isa::lowest is the position of the
// lowest bit, or anything if there is none.
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

// Adds what a stream has in the window and moves the stream past it. The pointers are local
// because a byte written might, for all the compiler knows, be part of a struct.
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

// Writes the indices of a line and returns how many there are; eight at a time, and so up to
// seven too many, if `ahead` says that there is room.
template <class Isa>
inline std::size_t list(std::uint32_t first, std::uint64_t touched, bool ahead,
                        std::uint32_t* oi) {
  const std::size_t found = __builtin_popcountll(touched);
  for (std::size_t o = 0; ahead && o < found; o += 8) {
    for (std::size_t k = 0; k < 8; ++k) {
      std::uint32_t index = first + Isa::lowest(touched);
      asm("" : "+r"(index));  // else the compiler gathers eight in a vector, which is slower
      oi[o + k] = index;
      touched &= touched - 1;
    }
  }
  for (std::size_t o = 0; !ahead && o < found; ++o) {
    oi[o] = first + Isa::lowest(touched);
    touched &= touched - 1;
  }
  return found;
}

// Writes the indices of all touched blocks and forgets the touch.
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

// Writes out the window and leaves it clear; returns the number of entries.
template <class Isa, Op op, class T, class Block>
std::size_t flush(const Window<T>& w, Block block, bool ahead, std::uint32_t* oi, T* ov) {
  const std::size_t found = list_all<Isa>(w, ahead, oi);
  for (std::size_t o = 0; o < found; ++o) {
    T* total = w.total + std::size_t(oi[o] - w.start) * block;
    for (std::size_t k = 0; k < block; ++k) {
      ov[o * block + k] = total[k];
      total[k] = neutral<op, T>();
    }
  }
  canonicalise(ov, found * block);
  return found;
}

}  // namespace
}  // namespace sparcml
