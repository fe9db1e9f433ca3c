// A vector during a call: sparse, or dense when that is no larger.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/scatter/scatter.h"
#include "kernels/stream.h"
#include "messages/call.h"

namespace sparcml::messages {

// Kernels that only move values get integers as floats of the same size.
template <class T>
using Moved = std::conditional_t<std::is_floating_point_v<T>, T,
                                 std::conditional_t<sizeof(T) == 4, float, double>>;

template <class T>
inline const Moved<T>* moved(const T* values) {
  return reinterpret_cast<const Moved<T>*>(values);
}
template <class T>
inline Moved<T>* moved(T* values) {
  return reinterpret_cast<Moved<T>*>(values);
}

template <class T>
struct Vector {
  std::size_t blocks = 0;  // of this range
  bool dense = false;
  std::size_t nnz = 0;
  const std::uint32_t* indices = nullptr;
  const T* values = nullptr;
  bool scratch = false;  // nothing else uses the values, which a sum may overwrite
  Shared index_memory, value_memory;

  Stream<T> entries() const { return {indices, values, nnz}; }
  Stream<Moved<T>> moved_entries() const { return {indices, moved(values), nnz}; }
  T* writable() const { return const_cast<T*>(values); }
};

// Returns whether nnz entries have at least as many bytes sparse as dense.
inline bool dense_is_smaller(std::size_t nnz, std::size_t blocks, std::size_t entry_bytes) {
  return nnz * (4 + entry_bytes) >= blocks * entry_bytes;
}

template <class T>
inline std::size_t entry_bytes(const VectorContext& context) {
  return context.block * sizeof(T);
}

// Returns a dense vector of uninitialized values, with room for a header before them.
template <class T>
Vector<T> empty_dense(const VectorContext& context, std::size_t blocks) {
  Vector<T> x;
  x.blocks = x.nnz = blocks;
  x.dense = x.scratch = true;
  x.value_memory = context.memory.allocate(header_bytes + blocks * entry_bytes<T>(context));
  x.values = reinterpret_cast<T*>(x.value_memory->data + header_bytes);
  return x;
}

template <class T>
Vector<T> filled(const VectorContext& context, std::size_t blocks) {
  Vector<T> x = empty_dense<T>(context, blocks);
  std::fill_n(x.writable(), blocks * context.block, context.fill_value<T>());
  return x;
}

// Returns a sparse vector with room for `nnz` entries.
template <class T>
Vector<T> empty_sparse(const VectorContext& context, std::size_t blocks, std::size_t nnz) {
  Vector<T> x;
  x.blocks = blocks, x.nnz = nnz;
  x.scratch = true;
  x.index_memory = context.memory.allocate(4 * nnz);
  x.value_memory = context.memory.allocate(nnz * entry_bytes<T>(context));
  x.indices = reinterpret_cast<std::uint32_t*>(x.index_memory->data);
  x.values = reinterpret_cast<T*>(x.value_memory->data);
  return x;
}

template <class T>
Vector<T> densify(const VectorContext& context, const Vector<T>& x) {
  if (x.dense) return x;
  Vector<T> y = filled<T>(context, x.blocks);
  scatter_assign<Moved<T>>(moved(y.writable()), x.moved_entries(), context.block);
  return y;
}

template <class T>
Vector<T> densify_if_smaller(const VectorContext& context, Vector<T> x) {
  if (x.dense || !dense_is_smaller(x.nnz, x.blocks, entry_bytes<T>(context))) return x;
  return densify(context, x);
}

}  // namespace sparcml::messages
