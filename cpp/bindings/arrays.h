// Array arguments of all bindings. Bind them with "name"_a.noconvert(), which prevents silent
// copies.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "kernels/ascending/ascending.h"
#include "kernels/op.h"

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using In = nb::ndarray<const T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = In<std::uint8_t>;

// Kernels that only move values get integers as floats of the same size, and compare bits.
template <class T>
using Moved = std::conditional_t<std::is_floating_point_v<T>, T,
                                 std::conditional_t<sizeof(T) == 4, float, double>>;
template <class T>
using Fill = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;

template <class T>
inline Moved<T> moved(Fill<T> fill) {
  return sparcml::from_bits<Moved<T>>(sparcml::bits(static_cast<T>(fill)));
}

template <class T>
inline const Moved<T>* moved(In<T> array) {
  return reinterpret_cast<const Moved<T>*>(array.data());
}

template <class T>
inline Moved<T>* moved(Out<T> array) {
  return reinterpret_cast<Moved<T>*>(array.data());
}

// Arguments are checked before the GIL is released; the loops cannot fail.
inline void require(bool holds, const char* message) {
  if (!holds) throw nb::value_error(message);
}

// Returns whether size == count * block, for a positive block, without overflow.
inline bool has_blocks(std::size_t size, std::size_t count, std::size_t block) {
  return size % block == 0 && size / block == count;
}

// Kernels stay within their arrays only if indices ascend; the check is cheap in comparison.
inline void require_ascending(const In<std::uint32_t>& indices, const char* message,
                              std::uint32_t blocks = UINT32_MAX) {
  bool fine = false;
  {
    nb::gil_scoped_release nogil;
    fine = sparcml::ascending_prefix(indices.data(), indices.size(), blocks) == indices.size();
  }
  require(fine, message);
}

inline sparcml::Op as_op(int op) {
  require(op >= 0 && op <= 3, "op must be 0 (sum), 1 (min), 2 (max) or 3 (prod)");
  return static_cast<sparcml::Op>(op);
}
