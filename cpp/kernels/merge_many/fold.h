// Folds windows from first to last, for any instruction set.
#pragma once

#include <new>

#include "kernels/merge_many/generic.h"

namespace sparcml {
namespace {

constexpr std::size_t kGroup = 8 * kLine;  // blocks that flush() handles at once
constexpr std::size_t kMinWindow = 1 << 12, kMaxWindow = 1 << 16;  // values in a window

template <class T>
std::size_t entries(const Stream<T>* streams, std::size_t count) {
  std::size_t n = 0;
  for (std::size_t k = 0; k < count; ++k) n += streams[k].nnz;
  return n;
}

// Sets `index` to the smallest one not yet added; returns false if there is none.
template <class T>
bool next(const Stream<T>* streams, std::size_t count, std::uint32_t& index) {
  bool any = false;
  for (std::size_t k = 0; k < count; ++k) {
    if (streams[k].nnz == 0 || (any && streams[k].indices[0] >= index)) continue;
    index = streams[k].indices[0];
    any = true;
  }
  return any;
}

// Returns the blocks per window: a stream should have about 128 entries in it, and it must fit
// in the caches.
template <class T>
std::size_t window_width(const Stream<T>* streams, std::size_t count, std::size_t block) {
  std::size_t nnz = 1, range = 1;
  for (std::size_t k = 0; k < count; ++k) {
    if (streams[k].nnz == 0) continue;
    const std::size_t end = streams[k].indices[streams[k].nnz - 1] + std::size_t(1);
    range = end > range ? end : range;
    nnz += streams[k].nnz;
  }
  std::size_t width = range * count / nnz * 128 * block;
  width = width > nnz * 64 ? nnz * 64 : width;  // clearing must not cost more than adding
  width = width < kMinWindow ? kMinWindow : width > kMaxWindow ? kMaxWindow : width;
  return (width / block + kGroup - 1) / kGroup * kGroup;
}

// Folds streams with one window. Its memory is clear between calls.
template <class Isa, Op op, class T, class Block>
class Fold {
 public:
  Fold(std::size_t width, Block block) : block_(block) {
    const std::size_t lines = width / kLine;
    memory_ = static_cast<T*>(::operator new(width*(block * sizeof(T) + 1) + lines));
    std::uint8_t* const blocks = reinterpret_cast<std::uint8_t*>(memory_ + width * block);
    window_ = {memory_, blocks, blocks + width, width, 0};
    std::memset(blocks, 0, width + lines);
    for (std::size_t k = 0; k < width * block; ++k) memory_[k] = identity<op, T>();
  }
  ~Fold() { ::operator delete(memory_); }
  Fold(const Fold&) = delete;
  Fold& operator=(const Fold&) = delete;

  std::size_t operator()(Stream<T>* streams, std::size_t count, std::uint32_t* oi, T* ov) {
    Window<T> w = window_;
    std::size_t o = 0;
    while (next(streams, count, w.start)) {
      for (std::size_t k = 0; k < count; ++k) add<op>(w, streams[k], block_);
      const bool ahead = entries(streams, count) >= 8;  // their part of the output is free
      o += flush<Isa, op>(w, block_, ahead, oi + o, ov + o * block_);
    }
    return o;
  }

 private:
  const Block block_;
  T* memory_;
  Window<T> window_;
};

// Wide blocks need no window: inspecting all streams for each block is cheap in comparison.
template <Op op, class T>
std::size_t fold_wide(Stream<T>* streams, std::size_t count, std::size_t block,
                      std::uint32_t* oi, T* ov) {
  std::size_t o = 0;
  for (std::uint32_t index = 0; next(streams, count, index); ++o) {
    oi[o] = index;
    T* total = ov + o * block;
    for (std::size_t k = 0; k < block; ++k) total[k] = identity<op, T>();
    for (Stream<T>* s = streams; s < streams + count; ++s) {
      if (s->nnz == 0 || s->indices[0] != index) continue;
      SPARCML_IVDEP
      for (std::size_t k = 0; k < block; ++k)
        total[k] = combine_raw<op>(total[k], s->values[k]);
      *s = {s->indices + 1, s->values + block, s->nnz - 1};
    }
    canonicalise(total, block);
  }
  return o;
}

}  // namespace
}  // namespace sparcml
