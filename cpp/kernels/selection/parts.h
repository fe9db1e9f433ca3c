// Parts of a long vector that threads scan, and the memory of what each finds.
//
// op.h explains the anonymous namespace.
#pragma once

#include <algorithm>
#include <memory>

#include "kernels/selection/selection.h"
#include "kernels/threads/pool.h"

namespace sparcml {
namespace {

constexpr std::size_t kSquares = 2048;  // squares are summed in blocks of this size
constexpr std::size_t kPart = 1 << 17;  // values per part, at least

// As many parts as threads, each of which begins with a block.
class Parts {
 public:
  const std::size_t count;

  explicit Parts(std::size_t size)
      : count(std::clamp<std::size_t>(size / kPart, 1, threads())),
        size_(size),
        blocks_(size / kSquares) {}

  std::size_t begin(std::size_t part) const {
    return part == count ? size_ : part_begin(blocks_, count, part) * kSquares;
  }

 private:
  std::size_t size_, blocks_;
};

// Entries of a part other than the first, which writes to the result.
template <class T>
class OwnEntries {
 public:
  EntryBuffer<T> allocate(std::size_t size) {
    indices_.reset(new std::uint32_t[size]);  // uninitialized
    values_.reset(new T[size]);
    return {indices_.get(), values_.get(), size};
  }

 private:
  std::unique_ptr<std::uint32_t[]> indices_;
  std::unique_ptr<T[]> values_;
};

}  // namespace
}  // namespace sparcml
