// Streams are added window by window: a dense accumulator that stays in the cache, and a byte
// for each of its blocks, set when the block is touched (a byte, not a bit: setting bits would
// make each entry wait for its neighbour). A second byte for each line of 64 blocks lets the
// emitter skip what nobody touched, so sparse windows cost what they hold.
//
// Isa::touched turns the 64 bytes of a line into bits.
#include "kernels/merge_many/merge_many.h"

namespace sparcml {
namespace {

constexpr std::size_t kWindow = 1 << 15;  // values of a window: 128 KB of float
constexpr std::size_t kLine = 64;         // blocks

template <class T>
struct Window {
  T* total;
  std::uint8_t* blocks;
  std::uint8_t* lines;
  std::size_t width;  // in blocks, a multiple of kLine
  std::uint32_t start;
};

template <Op op, class T>
void clear(Window<T>& w, std::size_t line, std::size_t block) {
  T* total = w.total + line * kLine * block;
  for (std::size_t k = 0; k < kLine * block; ++k) total[k] = neutral<op, T>();
  std::memset(w.blocks + line * kLine, 0, kLine);
  w.lines[line] = 0;
}

// Adds what a stream has in the window and moves the stream past it.
template <Op op, class T>
void add(Window<T>& w, Stream<T>& s, std::size_t block) {
  std::size_t n = 0;
  for (; n < s.nnz; ++n) {
    const std::size_t at = s.indices[n] - w.start;
    if (at >= w.width) break;
    w.blocks[at] = 1;
    w.lines[at / kLine] = 1;
    if (block == 1) {
      w.total[at] = combine_raw<op>(w.total[at], s.values[n]);
    } else {
      T* total = w.total + at * block;
      const T* values = s.values + n * block;
      SPARCML_IVDEP
      for (std::size_t k = 0; k < block; ++k) total[k] = combine_raw<op>(total[k], values[k]);
    }
  }
  s = {s.indices + n, s.values + n * block, s.nnz - n};
}

// Writes the touched blocks of a line, four at a time with up to three too many: `room` says
// how many entries the output can still take.
template <class T>
std::size_t emit(const Window<T>& w, std::size_t line, std::uint64_t touched, std::size_t block,
                 std::size_t room, std::uint32_t* oi, T* ov) {
  const std::size_t found = __builtin_popcountll(touched), first = line * kLine;
  const T* total = w.total + first * block;
  const std::uint32_t index = w.start + static_cast<std::uint32_t>(first);
  const bool single = block == 1 && found + 3 <= room;
  for (std::size_t o = 0; single && o < found; o += 4) {
    for (std::size_t k = 0; k < 4; ++k) {
      const int at = __builtin_ctzll(touched | 1ull << 63);
      oi[o + k] = index + at;
      ov[o + k] = total[at];
      touched &= touched - 1;
    }
  }
  for (std::size_t o = 0; !single && o < found; ++o) {
    const int at = __builtin_ctzll(touched);
    oi[o] = index + at;
    std::memcpy(ov + o * block, total + at * block, block * sizeof(T));
    touched &= touched - 1;
  }
  return found;
}

// Writes out the window and leaves it clear.
template <class Isa, Op op, class T>
std::size_t flush(Window<T>& w, std::size_t block, std::size_t room, std::uint32_t* oi, T* ov) {
  std::size_t o = 0;
  for (std::size_t group = 0; group < w.width / kLine; group += 8) {
    std::uint64_t lines;
    std::memcpy(&lines, w.lines + group, sizeof lines);
    for (; lines; lines &= lines - 1) {
      const std::size_t line = group + __builtin_ctzll(lines) / 8;
      const std::uint64_t touched = Isa::touched(w.blocks + line * kLine);
      o += emit(w, line, touched, block, room - o, oi + o, ov + o * block);
      clear<op>(w, line, block);
    }
  }
  canonicalise(ov, o * block);
  return o;
}

}  // namespace
}  // namespace sparcml
