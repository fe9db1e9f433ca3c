// Ranges of a vector, as `stream/ranges.py` defines them.
#pragma once

#include "messages/vector.h"

namespace sparcml::messages {

inline std::vector<std::size_t> range_offsets(std::size_t blocks, int ranges) {
  std::vector<std::size_t> offsets;
  for (int j = 0; j <= ranges; ++j)
    offsets.push_back(blocks * static_cast<std::size_t>(j) / static_cast<std::size_t>(ranges));
  return offsets;
}

// Returns the blocks from `start` to `end` as a vector of their own.
template <class T>
Vector<T> part_of(Call& call, const Vector<T>& x, std::size_t start, std::size_t end) {
  Vector<T> part = x;
  part.blocks = part.nnz = end - start;
  part.scratch = false;
  if (x.dense) {
    part.values += start * call.block;
    return part;
  }
  const std::uint32_t *first = std::lower_bound(x.indices, x.indices + x.nnz, start),
                      *last = std::lower_bound(first, x.indices + x.nnz, end);
  part.nnz = static_cast<std::size_t>(last - first);
  part.values += static_cast<std::size_t>(first - x.indices) * call.block;
  part.indices = first;
  if (start) {
    part.index_memory = call.host.allocate(4 * part.nnz);
    auto* shifted = reinterpret_cast<std::uint32_t*>(part.index_memory->data);
    std::transform(first, last, shifted,
                   [start](std::uint32_t i) { return i - static_cast<std::uint32_t>(start); });
    part.indices = shifted;
  }
  return densify_if_smaller(call, std::move(part));
}

// Returns the vector of these ranges; dense if that is no larger.
template <class T>
Vector<T> join(Call& call, const std::vector<Vector<T>>& ranges,
               const std::vector<std::size_t>& offsets) {
  std::size_t nnz = 0;
  for (const Vector<T>& x : ranges) nnz += x.nnz;
  const std::size_t blocks = offsets.back(), block = call.block;
  const bool dense = dense_is_smaller(nnz, blocks, entry_bytes<T>(call));
  Vector<T> out = dense ? empty_dense<T>(call, blocks) : empty_sparse<T>(call, blocks, nnz);
  T* values = out.writable();
  auto* indices = const_cast<std::uint32_t*>(out.indices);
  for (std::size_t j = 0; j < ranges.size(); ++j) {
    const Vector<T>& x = ranges[j];
    if (dense) {
      values = out.writable() + offsets[j] * block;
      if (x.dense) {
        std::copy_n(x.values, x.blocks * block, values);
      } else {
        std::fill_n(values, x.blocks * block, call.fill_value<T>());
        scatter_assign<Moved<T>>(moved(values), x.moved_entries(), block);
      }
      continue;
    }
    const auto start = static_cast<std::uint32_t>(offsets[j]);
    if (x.dense) {
      for (std::size_t i = 0; i < x.nnz; ++i)
        *indices++ = start + static_cast<std::uint32_t>(i);
    } else {
      indices = std::transform(x.indices, x.indices + x.nnz, indices,
                               [start](std::uint32_t i) { return i + start; });
    }
    values = std::copy_n(x.values, x.nnz * block, values);
  }
  return out;
}

}  // namespace sparcml::messages
