// Allreduces from Python arrays to vectors.
#pragma once

#include "bindings/message_loop.h"

template <class T>
ms::Vector<T> reduce(ms::Call& call, int algorithm, ms::Vector<T> x) {
  const auto run = [&] {
    switch (algorithm) {
      case 3:
        return ms::ssar_recursive_double(call, std::move(x));
      case 4:
        return ms::ssar_split_allgather(call, std::move(x));
      case 5:
        return ms::dsar_split_allgather(call, std::move(x));
      default:
        return ms::ssar_ring(call, std::move(x));
    }
  };
  ms::Vector<T> result = run();
  call.finish();
  return result;
}

template <class T>
ms::Vector<T> vector_of(std::size_t blocks, std::size_t block, nb::handle indices,
                        nb::handle values) {
  ms::Vector<T> x;
  x.blocks = x.nnz = blocks;
  x.value_memory = memory_of(values);
  x.values = reinterpret_cast<const T*>(x.value_memory->data);
  x.dense = indices.is_none();
  if (!x.dense) {
    x.index_memory = memory_of(indices);
    x.indices = reinterpret_cast<const std::uint32_t*>(x.index_memory->data);
    x.nnz = x.index_memory->size / 4;
    require(sparcml::ascending_prefix(x.indices, x.nnz, static_cast<std::uint32_t>(blocks)) ==
                x.nnz,
            "allreduce: indices must ascend and be below the number of blocks");
  }
  require(x.value_memory->size == x.nnz * block * sizeof(T),
          "allreduce: values must have block values per index");
  return x;
}
