// Reduction of vectors, as `stream/reduction.py` defines it.
#pragma once

#include "kernels/dense/dense.h"
#include "kernels/merge/merge.h"
#include "kernels/merge_many/merge_many.h"
#include "messages/vector.h"

namespace sparcml::messages {

template <class T>
Vector<T> add_dense(Call& call, const Vector<T>& a, const Vector<T>& b) {
  Vector<T> out = a.scratch ? a : b.scratch ? b : empty_dense<T>(call, a.blocks);
  combine_dense<T>(call.op, a.values, b.values, out.writable(), a.blocks * call.block);
  return out;
}

template <class T>
Vector<T> add_to_dense(Call& call, const Vector<T>& dense, const Vector<T>& sparse) {
  Vector<T> out = dense;
  if (!dense.scratch) {
    out = empty_dense<T>(call, dense.blocks);
    std::copy_n(dense.values, dense.blocks * call.block, out.writable());
  }
  scatter<T>(call.op, out.writable(), sparse.entries(), call.block);
  return out;
}

// Returns ((fill op p0) op p1) ... as a dense vector. All parts are added to a short range
// before the next one, which stays in the cache.
template <class T>
Vector<T> add_to_filled(Call& call, const std::vector<Vector<T>>& parts) {
  constexpr std::size_t cached = 1 << 17;  // bytes
  std::size_t nnz = 0;
  for (const Vector<T>& x : parts) nnz += x.nnz;
  Timer timer(call, add_phase, -1, static_cast<std::int64_t>(nnz));
  const std::size_t blocks = parts[0].blocks, block = call.block;
  const std::size_t step = std::max<std::size_t>(1, cached / entry_bytes<T>(call));
  Vector<T> out = empty_dense<T>(call, blocks);
  std::vector<std::size_t> done(parts.size());
  for (std::size_t start = 0; start < blocks; start += step) {
    const std::size_t end = std::min(blocks, start + step), size = (end - start) * block;
    T* const range = out.writable() + start * block;
    std::fill_n(range, size, call.fill_value<T>());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Vector<T>& x = parts[i];
      if (x.dense) {
        combine_dense<T>(call.op, range, x.values + start * block, range, size);
        continue;
      }
      const std::uint32_t *first = x.indices + done[i], *last = x.indices + x.nnz;
      const auto count = static_cast<std::size_t>(std::lower_bound(first, last, end) - first);
      scatter<T>(call.op, out.writable(), {first, x.values + done[i] * block, count}, block);
      done[i] += count;
    }
  }
  return out;
}

// Shortens a sparse vector to the entries that were written.
template <class T>
Vector<T> with_entries(Call& call, Vector<T> x, std::size_t nnz) {
  x.nnz = nnz;
  return densify_if_smaller(call, std::move(x));
}

// Returns a op b; the form of the result depends on the operands only.
template <class T>
Vector<T> add(Call& call, const Vector<T>& a, const Vector<T>& b) {
  Timer timer(call, add_phase, -1, static_cast<std::int64_t>(a.nnz + b.nnz));
  if (a.dense && b.dense) return add_dense(call, a, b);
  if (a.dense) return add_to_dense(call, a, b);
  if (b.dense) return add_to_dense(call, b, a);  // every operation is commutative
  if (dense_is_smaller(std::max(a.nnz, b.nnz), a.blocks, entry_bytes<T>(call)))
    return add_to_dense(call, densify(call, a), b);
  Vector<T> out = empty_sparse<T>(call, a.blocks, a.nnz + b.nnz);
  const std::size_t nnz = merge<T>(call.op, a.entries(), b.entries(), call.block,
                                   const_cast<std::uint32_t*>(out.indices), out.writable());
  return with_entries(call, std::move(out), nnz);
}

// Returns ((s0 op s1) op s2) ..., in this order on every rank.
template <class T>
Vector<T> add_many(Call& call, const std::vector<Vector<T>>& parts) {
  if (parts.size() == 1) return densify_if_smaller(call, parts[0]);
  if (std::any_of(parts.begin(), parts.end(), [](const auto& x) { return x.dense; })) {
    Vector<T> total = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) total = add(call, total, parts[i]);
    return total;
  }
  std::vector<Stream<T>> streams;
  std::size_t capacity = 0;
  for (const Vector<T>& x : parts) streams.push_back(x.entries()), capacity += x.nnz;
  Timer timer(call, add_phase, -1, static_cast<std::int64_t>(capacity));
  Vector<T> out = empty_sparse<T>(call, parts[0].blocks, capacity);
  const std::size_t nnz =
      merge_many<T>(call.op, streams.data(), streams.size(), call.block,
                    const_cast<std::uint32_t*>(out.indices), out.writable());
  return with_entries(call, std::move(out), nnz);
}

}  // namespace sparcml::messages
