// A sparse vector of nnz strictly ascending indices and nnz * block values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sparcml {

template <class T>
struct Stream {
  const std::uint32_t* indices;
  const T* values;
  std::size_t nnz;
};

}  // namespace sparcml
